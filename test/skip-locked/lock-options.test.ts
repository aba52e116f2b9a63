import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { lockRows, popRows } from 'drizzle-queue/skip-locked';
import { describe, expect, test } from 'vitest';
import { orderLines, urls } from './support/tables.ts';

const db = drizzle.mock();

/** What a caller without types may pass. */
function untyped(options: Record<string, unknown>): never {
  return options as never;
}

describe('wrong options are refused before anything is sent', () => {
  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('a limit of %d', (limit) => {
    expect(() => popRows(db, urls, { limit })).toThrow(
      new RangeError(`popRows: limit must be a whole number above 0; got ${limit}`),
    );
  });

  test.each([null, '1', true])('%j as a limit', (limit) => {
    expect(() => popRows(db, urls, untyped({ limit }))).toThrow(/^popRows: limit must be a whole number/);
  });

  test('an unknown strength or wait, which would otherwise become SQL', () => {
    expect(() => lockRows(db, urls, untyped({ strength: 'update; drop table urls' }))).toThrow(
      new TypeError(
        'lockRows: strength must be one of update, no key update, share, key share; got update; drop table urls',
      ),
    );
    expect(() => lockRows(db, urls, untyped({ strength: 'toString' }))).toThrow(
      /^lockRows: strength must be/,
    );
    expect(() => lockRows(db, urls, untyped({ wait: 'for ever' }))).toThrow(
      new TypeError('lockRows: wait must be one of skip locked, nowait; got for ever'),
    );
  });

  test('a lock that others can share, for rows that are deleted', () => {
    expect(() => popRows(db, urls, untyped({ strength: 'share' }))).toThrow(
      /^popRows: strength must be one of update, no key update; got share/,
    );
  });
});

describe('the SQL', () => {
  test('one statement, for a key of one column', () => {
    expect(popRows(db, urls, { where: sql`${urls.depth} > 0`, orderBy: urls.id }).toSQL()).toMatchObject({
      sql:
        'delete from "urls" where "urls"."id" = any(array(select "urls"."id" from "urls" where "urls"."depth" > 0 ' +
        'order by "urls"."id" limit $1 for update skip locked)) ' +
        'returning "id", "the_url", "depth", "found_at", "fetched_by", "headers"',
      params: [1],
    });
  });

  test('one statement, for a key of several', () => {
    expect(
      popRows(db, orderLines, { limit: 5, wait: 'nowait', returning: { state: orderLines.state } }).toSQL(),
    ).toMatchObject({
      sql:
        'delete from "old ""shop"""."Order Lines" where ("old ""shop"""."Order Lines"."order", "old ""shop"""."Order Lines"."Line no.") ' +
        'in (with locked (k0, k1) as (select "old ""shop"""."Order Lines"."order", "old ""shop"""."Order Lines"."Line no." ' +
        'from "old ""shop"""."Order Lines" limit $1 for update nowait) select k0, k1 from locked) returning "state"',
      params: [5],
    });
  });
});

import { type SQL, sql } from 'drizzle-orm';
import { PgDialect, pgTable, text } from 'drizzle-orm/pg-core';
import { createQueueTables } from 'drizzle-queue/schema';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { beginJobsQuery } from '../../src/core/queries/begin/begin-jobs.ts';
import { type Claim, claimJobsQuery } from '../../src/core/queries/claim/claim-jobs.ts';
import { completeOneJobQuery } from '../../src/core/queries/settle/complete-one-job.ts';
import { finishJobsQuery } from '../../src/core/queries/settle/finish-jobs.ts';
import { KeptStatement, KeptStatements } from '../../src/core/sql/kept-statement.ts';
import type { GroupTables } from '../../src/features/limits/sql/limit-tables.ts';
import { groupedTables } from '../queries/support/groups.ts';
import { claimOf } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const dialect = new PgDialect();
const render = (query: SQL) => {
  const { sql, params } = dialect.sqlToQuery(query);
  return { sql, params };
};

test('its text is made once, and each execution gives the values by their names', () => {
  let made = 0;
  const statement = new KeptStatement<{ a: string | null; b: number }>((place) => {
    made++;
    return sql`select ${place('b')}, ${'always'}, ${place('a')}, ${place('b')}`;
  });
  expect(render(statement.with({ a: 'x', b: 1 }))).toEqual({
    sql: 'select $1, $2, $3, $4',
    params: [1, 'always', 'x', 1],
  });
  expect(render(statement.with({ a: null, b: 2 })).params).toEqual([2, 'always', null, 2]);
  expect(made).toBe(1);
});

test('it may be a part of another, and names that look like parameters stay as they are', () => {
  const odd = pgTable('odd $1', { id: text().primaryKey() });
  const statement = new KeptStatement<{ a: string }>(
    (place) => sql`select '$1' from ${odd} where id = ${place('a')}`,
  );
  const query = sql`select ${0}, (${statement.with({ a: '$2' })})`;
  expect(render(query)).toEqual({
    sql: `select $1, (select '$1' from "odd $1" where id = $2)`,
    params: [0, '$2'],
  });
});

test('executions at once on two connections have their own values', async () => {
  const statement = new KeptStatement<{ n: number }>(
    (place) => sql`select ${place('n')}::int4 as n, pg_sleep(0.01)`,
  );
  const numbers = Array.from({ length: 20 }, (_, n) => n);
  const rows = await Promise.all(
    numbers.map(async (n) => {
      const [row] = await database.db.execute<{ n: number }>(statement.with({ n }));
      return row?.n;
    }),
  );
  expect(rows).toEqual(numbers);
});

test('there is one for each shape of each set of tables, made at its first use', () => {
  const made: string[] = [];
  const statements = new KeptStatements<{ queue: string; first: boolean }, { n: number }>(
    ({ queueJobs }, { queue, first }, place) => {
      made.push(queue);
      return sql`select ${place('n')}, ${queue}, ${first} from ${queueJobs}`;
    },
  );
  const own = createQueueTables();
  const other = createQueueTables({ prefix: 'other_' });
  const shapes = [
    { queue: 'q', first: true },
    { queue: 'q', first: false },
    // Names that look like two values.
    { queue: 'q,true', first: false },
    { queue: '', first: true },
  ];
  for (const n of [1, 2])
    for (const tables of [own, other])
      for (const shape of shapes) {
        expect(render(statements.of(tables, shape).with({ n }))).toEqual({
          sql: `select $1, $2, $3 from "${tables === own ? 'queue' : 'other'}_jobs"`,
          params: [n, shape.queue, shape.first],
        });
      }
  expect(made).toEqual([...shapes, ...shapes].map(({ queue }) => queue));
});

/** Claims whose texts differ, by what makes them differ. */
const claims: Readonly<Record<string, Partial<Claim>>> = {
  plain: {},
  'from gone workers': { fromGoneWorkers: true },
  'heeding pauses': { heedPauses: true },
  'of a small table': { ifTableIs: 'small' },
  'of a grown table': { ifTableIs: 'grown' },
  'of one that begins': { beginning: 1 },
  'of many that begin': { beginning: { atMost: 3, provenKinds: ['k'] } },
  'of many of whose kinds some are proven': {
    kinds: ['k', 'l'],
    beginning: { atMost: 3, provenKinds: ['k'] },
  },
  'of a part of a band': { bands: [{ priority: 5, floorMs: 0, ceilingMs: 1 }] },
  'of ids': { ids: [1, 2] },
};

test('each claim has the text of its own shape, whatever came before', () => {
  const own = createQueueTables();
  const other = createQueueTables({ prefix: 'other_' });
  const textOf = (tables: Parameters<typeof claimJobsQuery>[0], claim: Partial<Claim>) =>
    render(claimJobsQuery(tables, claimOf(claim))).sql;
  const texts = Object.values(claims).map((claim) => textOf(own, claim));
  expect(new Set(texts).size).toBe(texts.length);
  // In another order, and by other values, of tables that have none yet.
  const fresh = createQueueTables();
  const again = Object.values(claims)
    .reverse()
    .map((claim) => textOf(fresh, { ...claim, queue: 'another', workerId: 7, limit: 3 }));
  expect(again.reverse()).toEqual(texts);
  for (const [at, claim] of Object.values(claims).entries()) {
    expect(textOf(own, claim)).toBe(texts[at]);
    expect(textOf(other, claim)).not.toContain('"queue_jobs"');
  }
});

const held = [{ id: 1, fence: 1 }];
const finish = { type: 'finish', state: 'discarded', output: null, error: null, keepResult: true } as const;
const ended = held.map((job) => ({ ...job, transition: finish }));

/** The statements of a worker that name the queue of what it holds. */
const ofHolds: Readonly<Record<string, (tables: GroupTables, queue: string) => SQL>> = {
  beginJobsQuery: (tables, queue) => beginJobsQuery(tables, { queue, workerId: 1 }, held),
  completeOneJobQuery: (tables, queue) =>
    completeOneJobQuery(tables, { queue, workerId: 1 }, { id: 1, fence: 1, output: '1', keepResult: true }),
  finishJobsQuery: (tables, queue) => finishJobsQuery(tables, { queue, workerId: 1 }, ended),
};

describe.each(Object.entries(ofHolds))('%s', (name, queryOf) => {
  const ends = name !== 'beginJobsQuery';

  test('has one text for all queues without groups', () => {
    const fresh = groupedTables('success');
    const make = vi.spyOn(PgDialect.prototype, 'sqlToQuery');
    onTestFinished(() => make.mockRestore());
    const queues = Array.from({ length: 1_000 }, (_, n) => `tenant-${n}`);
    const queries = queues.map((queue) => queryOf(fresh, queue));
    expect(make).toHaveBeenCalledTimes(1);
    make.mockRestore();
    const [text, ...others] = queries.map((query) => render(query).sql);
    expect(others.every((other) => other === text)).toBe(true);
    expect(queries.map((query) => render(query).params.includes('tenant-7'))).toEqual(
      queues.map((queue) => queue === 'tenant-7'),
    );
  });

  test('has a text of its own for a queue with groups, whatever came before', () => {
    const textsOf = (...queues: readonly string[]) => {
      const fresh = groupedTables('success');
      return queues.map((queue) => render(queryOf(fresh, queue)).sql);
    };
    const [plain, grouped] = textsOf('other', 'q');
    expect(textsOf('q', 'other', 'q')).toEqual([grouped, plain, grouped]);
    // Only what ends holds tells claims of freed groups.
    expect([plain, grouped].map((text) => text?.includes('queue_notes'))).toEqual([false, ends]);
  });
});

import { bigint, boolean, integer, jsonb, text, timestamp } from 'drizzle-orm/pg-core';
import { createQueueTables } from 'drizzle-queue/schema';
import { describe, expect, test } from 'vitest';
import { filterOf } from '../../src/entries/filter/filter.ts';
import { ownColumnsOf } from '../../src/internal.ts';

const { queueJobs } = createQueueTables({
  columns: {
    tenantId: integer('tenant_id'),
    large: bigint('large', { mode: 'bigint' }),
    isTest: boolean('is_test').notNull(),
    due: timestamp('due', { withTimezone: true }),
    tags: jsonb('tags'),
    region: text('region'),
  },
});
const read = (filter: string) => filterOf(filter, ownColumnsOf(queueJobs), () => true);
/** The text by which a job is found, by column. */
const wanted = (filter: string) => {
  const { search, problems } = read(filter);
  return { problems, own: (search.own ?? []).map(({ column, text }) => [column.key, text]) };
};

/** All words that the filter knows, as the refusal of another one names them. */
const WORDS =
  String(filterOf('x:1', [], () => true).problems)
    .split('valid filters:')[1]
    ?.match(/\w+(?=:)/g) ?? [];

test.each(WORDS)('the word %s cannot be the key of an own column, which would take its place', (key) => {
  expect(() => createQueueTables({ columns: { [key]: text('mine') } as never })).toThrow(
    `columns.${key}: the name is taken`,
  );
});

test('a key of a payload may have letters of any script', () => {
  const { search, problems } = read('payload.straße:42 payload.注文.番号:7');
  expect(problems).toEqual([]);
  expect(search.kind).toBeUndefined();
  expect(search.payload).toEqual([
    ['{"straße":42}', '{"straße":"42"}'],
    ['{"注文":{"番号":7}}', '{"注文":{"番号":"7"}}'],
  ]);
  expect(read('größe:42').problems).toEqual([expect.stringContaining('Unknown filter “größe:”')]);
});

test.each(['@type', 'user/id', 'order#', '🎉', 'می\u200cخواهم', 'col·lecció', '-', "o'clock"])(
  'a key of a payload may also be %s',
  (key) => {
    const { search, problems } = read(`payload.${key}:7 queue:q`);
    expect(problems).toEqual([]);
    expect(search).toMatchObject({ queue: 'q', payload: [[`{"${key}":7}`, `{"${key}":"7"}`]] });
    expect(search.kind).toBeUndefined();
  },
);

test('a key of a payload ends at its first colon', () => {
  expect(read('payload.at/x:10:30').search.payload).toEqual([['{"at/x":"10:30"}']]);
  expect(read('payload./a:"x y"').search.payload).toEqual([['{"/a":"x y"}']]);
});

describe('a value of an own column', () => {
  test.each([
    ['tenantId:7', ['tenantId', '7']],
    ['large:9007199254740993', ['large', '9007199254740993']],
    ['isTest:true', ['isTest', 'true']],
    ['isTest:false', ['isTest', 'false']],
    ['due:2026-11-20', ['due', '2026-11-20T00:00:00.000Z']],
    ['tags:["a"]', ['tags', '["a"]']],
    ['region:eu', ['region', 'eu']],
    ['region:""', ['region', '']],
    ['tenantId:null', ['tenantId', null]],
  ])('%s', (filter, expected) => {
    expect(wanted(filter)).toEqual({ problems: [], own: [expected] });
  });

  test.each([
    ['isTest:yes', '“yes” is not a valid value of isTest:, which takes true or false'],
    ['isTest:""', '“” is not a valid value of isTest:, which takes true or false'],
    ['tenantId:""', '“” is not a valid value of tenantId:, which takes a number'],
    ['tenantId:x', '“x” is not a valid value of tenantId:, which takes a number'],
    ['large:""', '“” is not a valid value of large:, which takes a whole number'],
    ['large:0x1', '“0x1” is not a valid value of large:, which takes a whole number'],
    ['due:2', '“2” is not a valid value of due:, which takes a time such as 2026-11-20T10:00:00Z'],
    ['tags:a', '“a” is not a valid value of tags:, which takes JSON'],
  ])('%s finds nothing, and says what is taken', (filter, problem) => {
    expect(wanted(filter)).toEqual({ problems: [problem], own: [] });
  });
});

test.each(['id:1e2', 'id:0x2A', 'id:12.0', 'worker:1e2'])('%s is no number of a row', (filter) => {
  expect(read(filter).problems).toHaveLength(1);
});

describe('a time', () => {
  test.each([
    ['2026-11-20', '2026-11-20T00:00:00.000Z'],
    ['2026-11-20T10:00Z', '2026-11-20T10:00:00.000Z'],
    ['2026-11-20T10:00:00+02:00', '2026-11-20T08:00:00.000Z'],
    // As the script shows it beside a time of the page.
    ['"2026-11-20 10:00:00.123 UTC+02:00"', '2026-11-20T08:00:00.123Z'],
  ])('%s', (time, expected) => {
    const { search, problems } = read(`after:${time}`);
    expect({ problems, at: search.createdAfter?.toISOString() }).toEqual({ problems: [], at: expected });
  });

  test('how long ago', () => {
    const at = read('before:2h').search.createdBefore?.getTime() ?? Number.NaN;
    expect(Math.abs(Date.now() - 2 * 3_600_000 - at)).toBeLessThan(60_000);
  });

  test.each([
    '2',
    '20',
    'monday',
    '11/20/2026',
    '""',
    '2026-13-01',
    '0000-01-01',
    '999999w',
    // Without a zone, the clock of the server's process would decide what is meant.
    '2026-11-20T10:00',
    '2026-11-20T10:00:00.123',
    '"2026-11-20 10:00:00"',
  ])('is not %s', (time) => {
    const { problems, search } = read(`before:${time}`);
    expect(problems).toEqual([
      `“${time.replaceAll('"', '')}” is not a valid value of before:, ` +
        'which takes a time such as 2026-11-20T10:00:00Z, or how long ago, such as 2h',
    ]);
    expect(search.createdBefore).toBeUndefined();
  });
});

test.each([
  ['kind:a kind:b', 'kind'],
  ['after:2h after:1h', 'after'],
])('%s is refused: one of the two would be ignored', (filter, key) => {
  expect(read(filter).problems).toEqual([`“${key}:” stands twice: a filter takes one value of it.`]);
});

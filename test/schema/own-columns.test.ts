import { sql } from 'drizzle-orm';
import { bigint, integer, point, serial, text } from 'drizzle-orm/pg-core';
import { createQueueTables } from 'drizzle-queue/schema';
import { describe, expect, test } from 'vitest';
import { ownColumnsOf } from '../../src/core/schema/own-columns.ts';

/** As a caller without TypeScript may call it. */
function create(columns: object): unknown {
  return createQueueTables({ columns: columns as Record<never, never> });
}

describe('own columns', () => {
  test('are those beside the library’s, in their order', () => {
    const { queueJobs } = createQueueTables({
      columns: { tenantId: text('tenant_id'), shard: integer('shard').notNull() },
    });
    expect(ownColumnsOf(queueJobs).map(({ key, name, castTo }) => [key, name, castTo])).toEqual([
      ['tenantId', '"tenant_id"', 'text'],
      ['shard', '"shard"', 'integer'],
    ]);
    expect(ownColumnsOf(createQueueTables().queueJobs)).toEqual([]);
  });

  test.each([
    ['a key of the jobs', { payload: text('other') }, 'columns.payload: the name is taken'],
    ['a key of the results', { state: text('other') }, 'columns.state: the name is taken'],
    ['a field of a claimed job', { beginTime: text('other') }, 'columns.beginTime: the name is taken'],
    ['another field of a claimed job', { begun: text('other') }, 'columns.begun: the name is taken'],
    ['an option of an enqueue', { delayMs: integer('other') }, 'columns.delayMs: the name is taken'],
    ['an option of a cancel of many', { ids: integer('other') }, 'columns.ids: the name is taken'],
    ['a time of a filter', { createdAfter: text('t') }, 'columns.createdAfter: the name is taken'],
    ['an option of a list', { cursor: integer('other') }, 'columns.cursor: the name is taken'],
    ['an option of run', { timeoutMs: integer('other') }, 'columns.timeoutMs: the name is taken'],
    ['another option of run', { signal: text('other') }, 'columns.signal: the name is taken'],
    ['an option in a flow', { after: text('other') }, 'columns.after: the name is taken'],
    ['another option in a flow', { onFailure: text('other') }, 'columns.onFailure: the name is taken'],
    ['an option of a batch', { last: text('other') }, 'columns.last: the name is taken'],
    ['an option of a child', { detached: text('other') }, 'columns.detached: the name is taken'],
    ['a name in the jobs', { mine: text('run_at') }, 'the column name run_at is taken'],
    ['a name in the results', { mine: text('output') }, 'the column name output is taken'],
    ['a name that statements use', { mine: text('ended_group') }, 'the column name ended_group is taken'],
    ['another such name', { mine: integer('member_of') }, 'the column name member_of is taken'],
    ['no column', { mine: 'text' }, 'must be a column'],
    ['a name with NUL', { mine: text('a\0') }, 'NUL'],
    ['no name', { mine: text() }, 'give it a name in the database'],
    ['an array', { mine: text('mine').array() }, 'cannot be used'],
    ['a point', { mine: point('mine') }, 'cannot be used'],
    ['a serial', { mine: serial('mine') }, 'cannot be used'],
    ['an identity', { mine: integer('mine').generatedAlwaysAsIdentity() }, 'cannot be used'],
    [
      'a generated column',
      { mine: bigint('mine', { mode: 'number' }).generatedAlwaysAs(sql`1`) },
      'cannot be used',
    ],
    ['a unique column', { mine: text('mine').unique() }, 'use the option uniqueKey'],
    ['a primary key', { mine: integer('mine').primaryKey() }, 'use the option uniqueKey'],
  ])('cannot be %s', (_, columns, message) => {
    expect(() => create(columns)).toThrow(TypeError);
    expect(() => create(columns)).toThrow(message);
  });
});

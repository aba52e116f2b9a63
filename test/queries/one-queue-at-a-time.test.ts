import * as control from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findDue } from '../../src/core/queries/claim/find-due.ts';
import { findOverlooked } from '../../src/core/queries/claim/find-overlooked.ts';
import { findPageEnd } from '../../src/core/queries/hold/find-page-end.ts';
import { pruneResults } from '../../src/core/queries/operate/prune-results.ts';
import { redriveQueueByQueue } from '../../src/core/queries/operate/redrive-by-queue.ts';
import { redriveJobs } from '../../src/core/queries/operate/redrive-jobs.ts';
import { findRequests } from '../../src/core/queries/presence/find-requests.ts';
import type { QueueTables } from '../../src/core/schema/create-queue-tables.ts';
import type { Runner } from '../../src/core/sql/executor.ts';
import { contextOf, inContext } from '../../src/core/sql/statement-context.ts';
import { pruneKeys } from '../../src/features/keys/queries/prune-keys.ts';
import { findLeases } from '../../src/features/limits/queries/find-leases.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJobs, tables as plain } from './support/jobs.ts';

const database = useTestDatabase();
const distributed = inContext(plain, { server: { distributed: true, identified: true } });
const queues = ['a', 'b', 'c'] as const;

beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await database.client`
    truncate queue_jobs, queue_results, queue_workers, queue_pauses, queue_keys, queue_limits, queue_usage`;
});

/** Results of jobs 1 to 6, two in each queue, all long finished. */
async function addResults(state: string): Promise<void> {
  await database.client`
    insert into queue_results (job_id, queue, kind, payload, state, attempt, max_attempts, priority, fence, errors, metadata,
      created_at, run_at, finished_at)
    select n, (array['a', 'b', 'c'])[1 + n % 3], 'k', 'null', ${state}, 1, 1, 5, 1, '[]', '{}', now(), now(),
      now() - interval '1 hour' + n * interval '1 s'
    from generate_series(1, 6) as n`;
}

/** Runs statements and counts them. */
function counting() {
  let sent = 0;
  const runner: Runner = {
    execute: (query) => {
      sent++;
      return database.db.execute(query);
    },
  };
  return { runner, sent: () => sent };
}

describe('on Citus, one statement per queue finds what one for all finds elsewhere', () => {
  test('findDue', async () => {
    await addJobs(database.client, [{ queue: 'a' }, { queue: 'c', dueInMs: 1_000 }]);
    const question = {
      looks: queues.map((queue) => ({ queue, floorMs: Number.NEGATIVE_INFINITY })),
      kinds: ['k'],
      horizonMs: 60_000,
    };
    const { runner, sent } = counting();
    const found = await findDue(runner, distributed, question);
    expect(sent()).toBe(3);
    const due = new Map(found.map(({ queue, dueInMs }) => [queue, dueInMs]));
    expect([...due.keys()].sort()).toEqual([...queues]);
    expect(due.get('a')).toBeLessThanOrEqual(0);
    expect(due.get('b')).toBe(undefined);
    expect(due.get('c')).toBeGreaterThan(0);
    const once = await findDue(database.db, plain, question);
    expect(once.map(({ queue }) => queue).sort()).toEqual([...queues]);
  });

  test('findOverlooked, which stops at the first full slice', async () => {
    await addJobs(database.client, [{ queue: 'a' }, { queue: 'b' }, { queue: 'b' }, { queue: 'c' }]);
    const passed = Array.from({ length: 10 }, () => ({ floorMs: Date.now(), endMs: Date.now() + 60_000 }));
    const question = {
      looks: queues.map((queue) => ({ queue, passed, after: undefined })),
      kinds: ['k'],
      workerId: 1,
    };
    const all = await findOverlooked(database.db, distributed, { ...question, slice: 10 });
    expect(all).toEqual(await findOverlooked(database.db, plain, { ...question, slice: 10 }));
    expect([...all.found].map(([queue, jobs]) => [queue, jobs.length])).toEqual([
      ['a', 1],
      ['b', 2],
      ['c', 1],
    ]);
    const some = await findOverlooked(database.db, distributed, { ...question, slice: 2 });
    expect([...some.found.keys()]).toEqual(['a', 'b']);
    expect(some.stopped?.queue).toBe('b');
  });

  test('findRequests', async () => {
    const [lost, cancelled, kept] = await addJobs(database.client, [
      { queue: 'a', workerId: 2, fence: 2 },
      { queue: 'b', workerId: 1, fence: 1 },
      { queue: 'c', workerId: 1, fence: 1 },
    ]);
    await database.client`update queue_jobs set cancel_reason = 'why' where id = ${cancelled}`;
    await database.client`insert into queue_pauses (queue) values ('c')`;
    const question = {
      workerId: 1,
      queues,
      jobs: [lost, cancelled, kept].map((id, at) => ({ id, fence: 1, queue: queues[at] ?? '' })),
    };
    const found = await findRequests(database.db, distributed, question);
    expect(found).toEqual(await findRequests(database.db, plain, question));
    expect(found).toEqual({
      paused: new Set(['c']),
      jobs: [
        { id: lost, fence: 1, held: false, cancelReason: null },
        { id: cancelled, fence: 1, held: true, cancelReason: 'why' },
      ],
    });
  });

  test('pruneResults', async () => {
    await addResults('completed');
    await database.client`insert into queue_workers (name, queues) values ('w', '[]')`;
    const prune = { retentionMs: 60_000, limit: 1 };
    expect(await pruneResults(database.db, distributed, prune)).toEqual({ pruned: 3, workers: 1 });
    const left = await database.client`select job_id::int4 from queue_results order by job_id`;
    expect(left.map(({ job_id }) => job_id)).toEqual([4, 5, 6]);
    expect(await pruneResults(database.db, plain, { ...prune, limit: 10 })).toEqual({
      pruned: 3,
      workers: 1,
    });
  });

  test('pruneKeys', async () => {
    await database.client`
      insert into queue_keys (queue, kind, key, until)
      select (array['a', 'b', 'c'])[1 + n % 3], 'k', n, now() + (n - 6.5) * interval '1 hour'
      from generate_series(1, 12) as n`;
    const keys = control.queueKeys;
    // The oldest of each queue; then those that are left, but none whose time is not over.
    expect(await pruneKeys(database.db, { tables: distributed, keys }, 1)).toEqual({ pruned: 3, workers: 0 });
    const left = async () =>
      (await database.client`select key::int4 as key from queue_keys order by 1`).map(({ key }) => key);
    expect(await left()).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12]);
    expect(await pruneKeys(database.db, { tables: distributed, keys }, 10)).toEqual({
      pruned: 3,
      workers: 0,
    });
    expect(await left()).toEqual([7, 8, 9, 10, 11, 12]);
    expect(await pruneKeys(database.db, { tables: distributed, keys }, 10)).toEqual({
      pruned: 0,
      workers: 0,
    });
  });

  test('pruneKeys passes over a key that another transaction has locked', async () => {
    await database.client`
      insert into queue_keys (queue, kind, key, until)
      select 'a', 'k', n, now() - interval '1 hour' from generate_series(1, 3) as n`;
    const [other] = await database.connect();
    await other?.client.begin(async (sql) => {
      await sql`select from queue_keys where key = '2' for update`;
      const known = { tables: distributed, keys: control.queueKeys };
      expect(await pruneKeys(database.db, known, 10)).toEqual({ pruned: 2, workers: 0 });
    });
    expect(await database.client`select key from queue_keys`).toEqual([{ key: '2' }]);
  });

  test('findLeases, in the order of the questions', async () => {
    await database.client`
      insert into queue_workers (id, name, queues) overriding system value values (1, 'w', '[]'), (2, 'w', '[]')`;
    await database.client`
      insert into queue_usage (queue, kind, leases) values
        ('a', '', '{"1": [2, 3, 0], "2": [4, 4, 0]}'), ('b', '', '{"1": [1, 1, 0], "3": [9, 9, 0]}')`;
    await database.client`insert into queue_limits (queue, concurrency) values ('b', 5)`;
    const { queueLimits, queueUsage } = control;
    const of = <T extends QueueTables>(tables: T) =>
      inContext({ ...tables, queueLimits, queueUsage }, contextOf(tables));
    const questions = [
      { queue: 'b', kind: '', declared: 7 },
      { queue: 'a', kind: '', declared: 10 },
      { queue: 'c', kind: 'k', declared: null },
      { queue: 'b', kind: 'k', declared: 3 },
    ];
    const { runner, sent } = counting();
    const found = await findLeases(runner, of(distributed), 1, questions);
    expect(sent()).toBe(3);
    expect(found.map(({ limit, has, total }) => [limit, has, total])).toEqual([
      // Worker 3 is gone.
      [5, 1, 1],
      [10, 2, 6],
      [undefined, 0, 0],
      [3, 0, 0],
    ]);
    expect(found).toEqual(await findLeases(database.db, of(plain), 1, questions));
  });

  test('redrive, the oldest ids first whatever their queue', async () => {
    await addResults('discarded');
    await addJobs(database.client, [{ queue: 'a' }]);
    await database.client`update queue_jobs set unique_key = 'taken'`;
    await database.client`update queue_results set unique_key = 'taken' where job_id = 3`;
    const redrive = (limit: number) => redriveQueueByQueue(database.db, distributed, { kind: 'k', limit });
    expect(await redrive(4)).toEqual({ redriven: 3, duplicates: 1 });
    const left = await database.client`select job_id::int4 from queue_results order by job_id`;
    expect(left.map(({ job_id }) => job_id)).toEqual([3, 5, 6]);
    expect(await redriveJobs(database.db, plain, { kind: 'k' })).toEqual({ redriven: 2, duplicates: 1 });
  });
});

test('on Citus a page of a look through the table is of one queue: each shard would send a whole page', async () => {
  await database.client`
    insert into queue_jobs (queue, kind, payload, max_attempts)
    select case when n <= 2 then 'a' else 'b' end, 'k', 'null', 3 from generate_series(1, 50000) as n`;
  const [{ last } = {}] = await database.client`select max(id)::int as last from queue_jobs`;
  expect(await findPageEnd(database.db, plain, { queue: 'a', after: 0 })).toBe(last);
  expect(await findPageEnd(database.db, distributed, { queue: 'a', after: 0 })).toBeUndefined();
  await database.client`update queue_jobs set queue = 'a'`;
  expect(await findPageEnd(database.db, distributed, { queue: 'a', after: 0 })).toBe(last);
});

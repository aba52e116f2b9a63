import { beforeEach, describe, expect, test } from 'vitest';
import { findDue } from '../../src/queries/find-due.ts';
import { findOverlooked } from '../../src/queries/find-overlooked.ts';
import { findRequests } from '../../src/queries/find-requests.ts';
import { pruneResults } from '../../src/queries/prune-results.ts';
import { redriveJobs, redriveQueueByQueue } from '../../src/queries/redrive-jobs.ts';
import type { Runner } from '../../src/sql/executor.ts';
import { withServerFacts } from '../../src/sql/server-facts.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJobs, tables as plain } from './support/jobs.ts';

const database = useTestDatabase();
const distributed = withServerFacts(plain, { distributed: true, identified: true });
const queues = ['a', 'b', 'c'] as const;

beforeEach(async () => {
  await database.client`truncate queue_jobs, queue_results, queue_workers, queue_pauses`;
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

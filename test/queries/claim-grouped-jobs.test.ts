import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ClaimedJob } from '../../src/core/queries/claim/claim-jobs.ts';
import { beatWorker } from '../../src/core/queries/presence/beat-worker.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { rescheduleJobs } from '../../src/core/queries/settle/reschedule-jobs.ts';
import type { Serial } from '../../src/features/limits/settings/limit-settings.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import {
  addGrouped,
  addWorkers,
  claimGroups,
  clearGroups,
  groupedTables,
  groupRows,
} from './support/groups.ts';
import { idsOf } from './support/jobs.ts';
import { twoBackends } from './support/locks.ts';

const database = useTestDatabase();
let worker = 0;
beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await clearGroups(database.client);
  [worker = 0] = await addWorkers(database.client);
});

const claim = (options?: Parameters<typeof claimGroups>[2], serial?: Serial) =>
  claimGroups(database.db, worker, options, serial);

const completed = {
  type: 'finish',
  state: 'completed',
  output: null,
  error: null,
  keepResult: true,
} as const;
const error = { attempt: 1, name: 'Error', message: 'no', stack: 'Error: no' };

async function finish(
  jobs: readonly ClaimedJob[],
  { state = 'completed', serial }: { state?: 'completed' | 'discarded'; serial?: Serial } = {},
): Promise<void> {
  const transition = state === 'completed' ? completed : ({ ...completed, state, error } as const);
  const finished = await finishJobs(
    database.db,
    groupedTables(serial),
    { queue: 'q', workerId: worker },
    jobs.map(({ id, fence }) => ({ id, fence, transition })),
  );
  expect(finished.size).toBe(jobs.length);
}

async function retry(jobs: readonly ClaimedJob[], delayMs: number | null, serial?: Serial): Promise<void> {
  const back = await rescheduleJobs(
    database.db,
    groupedTables(serial),
    { queue: 'q', workerId: worker },
    jobs.map(({ id, fence, attempt }) => ({
      id,
      fence,
      transition: {
        type: 'reschedule',
        delayMs,
        attempt: delayMs === null ? attempt - 1 : attempt,
        error: null,
      },
    })),
  );
  expect(back.size).toBe(jobs.length);
}

const HOUR_MS = 3_600_000;

/** Two hours pass for what is written: a job that was to be retried is due, and a rate of an hour is free again. */
async function hoursPass(): Promise<void> {
  await database.client.begin(async (tx) => {
    await tx`update queue_jobs set run_at = run_at - interval '2 hours'`;
    await tx`update queue_holds set until = until - interval '2 hours'`;
    await tx`update queue_notes set due_at = due_at - interval '2 hours'`;
    await tx`
      update queue_groups set ready_at = ready_at - interval '2 hours', rate_used = coalesce((
        select jsonb_object_agg(e.key::int8 - ${2 * HOUR_MS}::int8, e.value) from jsonb_each(rate_used) as e
      ), '{}')`;
  });
}

const of = (group: string, count: number, rest = {}) =>
  Array.from({ length: count }, () => ({ group, ...rest }));

describe('shares', () => {
  test.each([1, 2])(
    'a small claim, of %s, passes over no group beside a heavier one of which it may take nothing',
    async (limit) => {
      await database.client`insert into queue_limits (queue, group_key, weight) values ('q', 'heavy', 100)`;
      await addGrouped(database.client, of('heavy', 5, { kind: 'served elsewhere' }));
      // From here on it is in the ring: its jobs are due.
      expect((await claim({ limit })).jobs).toEqual([]);
      await addGrouped(database.client, of('light', 1));
      const groups: unknown[] = [];
      for (let tries = 0; tries < 3; tries++)
        groups.push(...(await claim({ limit })).jobs.map(({ group }) => group));
      expect(groups).toEqual(['light']);
    },
  );

  test('each group gets its share of a claim, in the order of its own jobs', async () => {
    const a = await addGrouped(database.client, of('a', 20));
    const b = await addGrouped(database.client, of('b', 20));
    const { jobs, signs } = await claim({ limit: 10 });
    expect(idsOf(jobs.filter(({ group }) => group === 'a'))).toEqual(a.slice(0, 5));
    expect(idsOf(jobs.filter(({ group }) => group === 'b'))).toEqual(b.slice(0, 5));
    expect([jobs.length, signs.has('more')]).toEqual([10, true]);
  });

  test('by their weights', async () => {
    await addGrouped(database.client, [...of('a', 20), ...of('b', 20)]);
    await database.client`insert into queue_limits (queue, group_key, weight) values ('q', 'a', 4)`;
    const { jobs } = await claim({ limit: 10 });
    expect(jobs.filter(({ group }) => group === 'a')).toHaveLength(8);
  });

  test('a group comes again when the others have had their turn', async () => {
    await addGrouped(
      database.client,
      ['a', 'b', 'c'].flatMap((group) => of(group, 5)),
    );
    const order: (string | undefined)[] = [];
    for (let n = 0; n < 9; n++) {
      const { jobs } = await claim({ limit: 1 });
      order.push(jobs[0]?.group);
    }
    for (const round of [order.slice(0, 3), order.slice(3, 6), order.slice(6)]) {
      expect([...round].sort()).toEqual(['a', 'b', 'c']);
    }
  });

  test('one that was idle waits for no more than a place behind the others', async () => {
    await addGrouped(database.client, of('big', 1_000));
    await claim({ limit: 500 });
    await addGrouped(database.client, of('small', 1));
    const { jobs } = await claim({ limit: 2 });
    expect(jobs.map(({ group }) => group)).toContain('small');
  });

  test('all are taken in the end, and nothing is left to look at', async () => {
    await addGrouped(
      database.client,
      ['a', 'b', 'c'].flatMap((group) => of(group, 7)),
    );
    const taken: ClaimedJob[] = [];
    for (let n = 0; n < 10; n++) taken.push(...(await claim({ limit: 4 })).jobs);
    expect(new Set(idsOf(taken)).size).toBe(21);
    expect(Object.values(await groupRows(database.client)).map(({ ready }) => ready)).toEqual(
      new Array(3).fill('infinity'),
    );
    expect((await claim()).signs.has('more')).toBe(false);
  });

  test('and a better priority brings no group more turns', async () => {
    await addGrouped(database.client, [
      ...Array.from({ length: 3 }, () => ({ group: 'late', priority: 9 })),
      ...Array.from({ length: 3 }, () => ({ group: 'soon', priority: 0 })),
    ]);
    for (let round = 0; round < 3; round++) {
      const groups = [await claim({ limit: 1 }), await claim({ limit: 1 })].map(({ jobs }) => jobs[0]?.group);
      expect(groups.sort()).toEqual(['late', 'soon']);
    }
  });

  test('by priority within a group', async () => {
    const [low = 0] = await addGrouped(database.client, [{ group: 'a', priority: 7 }]);
    const [high = 0] = await addGrouped(database.client, [{ group: 'a', priority: 0 }]);
    expect(idsOf((await claim({ limit: 1 })).jobs)).toEqual([high]);
    expect(idsOf((await claim({ limit: 1 })).jobs)).toEqual([low]);
  });

  test('jobs that are scheduled, of other kinds or in other queues stay', async () => {
    await addGrouped(database.client, [
      { group: 'a', dueInMs: 60_000 },
      { group: 'a', kind: 'other' },
      { group: 'a', queue: 'other' },
    ]);
    const [mine = 0] = await addGrouped(database.client, [{ group: 'a' }]);
    expect(idsOf((await claim()).jobs)).toEqual([mine]);
    expect((await groupRows(database.client)).a?.ready).toBe('-infinity');
  });
});

describe('concurrency of a group', () => {
  const limits = { concurrency: 2 };

  test('no more are held than it says, and more when one ends', async () => {
    await addGrouped(database.client, of('a', 5));
    const { jobs } = await claim({ limits });
    expect(jobs).toHaveLength(2);
    expect((await claim({ limits })).jobs).toEqual([]);
    await finish(jobs.slice(0, 1));
    expect((await claim({ limits })).jobs).toHaveLength(1);
    expect((await claim({ limits })).jobs).toEqual([]);
  });

  test('a job that is retried later gives its slot back, and takes one again', async () => {
    await addGrouped(database.client, of('a', 3));
    const { jobs } = await claim({ limits });
    await retry(jobs, HOUR_MS);
    const next = await claim({ limits });
    expect(next.jobs).toHaveLength(1);
    await hoursPass();
    expect((await claim({ limits })).jobs).toHaveLength(1);
    expect((await claim({ limits })).jobs).toEqual([]);
  });

  test('one for a group goes before that for all, and that before the declared one', async () => {
    await addGrouped(database.client, [...of('a', 9), ...of('b', 9)]);
    await database.client`
      insert into queue_limits (queue, group_key, concurrency) values ('q', '*', 3), ('q', 'a', 5)`;
    const { jobs } = await claim({ limits, limit: 18 });
    expect(jobs.filter(({ group }) => group === 'a')).toHaveLength(5);
    expect(jobs.filter(({ group }) => group === 'b')).toHaveLength(3);
  });

  test('the slots of a worker that is gone are free, and its jobs come first', async () => {
    await addGrouped(database.client, of('a', 5));
    const first = await claim({ limits });
    const [other = 0] = await addWorkers(database.client);
    await database.client`delete from queue_workers where id = ${worker}`;
    await database.client`insert into queue_notes (queue, due_at, group_keys) values ('q', now(), '{a}')`;
    const { jobs } = await claimGroups(database.db, other, { limits });
    expect(idsOf(jobs)).toEqual(idsOf(first.jobs));
  });

  test('what a worker still holds that was declared gone counts again when it comes back', async () => {
    const { client } = database;
    const [job] = await addGrouped(client, [{ group: 'a', kind: 'other' }]);
    const one = { limits: { concurrency: 1 } };
    expect(idsOf((await claim({ ...one, kinds: ['other'] })).jobs)).toEqual([job]);
    const [other = 0] = await addWorkers(client);
    await client`delete from queue_workers where id = ${worker}`;
    const [next] = await addGrouped(client, [{ group: 'a' }, { group: 'a' }]);
    // It does not serve the kind of the job that is free, and may take one of its own.
    expect(idsOf((await claimGroups(database.db, other, one)).jobs)).toEqual([next]);
    await beatWorker(database.db, groupedTables(), { id: worker, name: 'w', queues: [] });
    await client`delete from queue_jobs where id = ${next ?? 0}`;
    await client`insert into queue_notes (queue, due_at, group_keys) values ('q', now(), '{a}')`;
    expect((await claimGroups(database.db, other, one)).jobs).toEqual([]);
  });

  test('holds that count no more are removed', async () => {
    await addGrouped(database.client, of('a', 6));
    for (let n = 0; n < 3; n++) await finish((await claim({ limits })).jobs);
    await addGrouped(database.client, of('a', 1));
    await claim({ limits });
    const [row] = await database.client`select cardinality(held) as n from queue_groups`;
    expect(row).toEqual({ n: 1 });
  });
});

describe('one after the other', () => {
  const limits = { run: 100 };

  test('a group is claimed as a run, and not again while one of it is held', async () => {
    const ids = await addGrouped(database.client, of('a', 5));
    const { jobs } = await claim({ limits, limit: 3 }, 'end');
    expect(idsOf(jobs)).toEqual(ids.slice(0, 3));
    expect((await claim({ limits }, 'end')).jobs).toEqual([]);
    await finish(jobs.slice(0, 2), { serial: 'end' });
    expect((await claim({ limits }, 'end')).jobs).toEqual([]);
    await finish(jobs.slice(2), { serial: 'end' });
    expect(idsOf((await claim({ limits }, 'end')).jobs)).toEqual(ids.slice(3));
  });

  test.each<Serial>(['end', 'success'])('%s: one that is retried keeps its place', async (serial) => {
    const ids = await addGrouped(database.client, of('a', 3));
    const { jobs } = await claim({ limits, limit: 1 }, serial);
    await retry(jobs, HOUR_MS, serial);
    expect((await claim({ limits }, serial)).jobs).toEqual([]);
    await hoursPass();
    expect(idsOf((await claim({ limits }, serial)).jobs)).toEqual(ids);
  });

  test('attempt: one that is retried goes behind the others', async () => {
    const ids = await addGrouped(database.client, of('a', 3));
    const { jobs } = await claim({ limits, limit: 1 }, 'attempt');
    await retry(jobs, HOUR_MS, 'attempt');
    expect(idsOf((await claim({ limits }, 'attempt')).jobs)).toEqual(ids.slice(1));
  });

  test('what is given back keeps its place, and stops nobody', async () => {
    const ids = await addGrouped(database.client, of('a', 3));
    await retry((await claim({ limits, limit: 2 }, 'end')).jobs, null, 'end');
    expect(idsOf((await claim({ limits }, 'end')).jobs)).toEqual(ids);
  });

  test('end: one that was discarded lets the next begin; success: it does not', async () => {
    for (const serial of ['end', 'success'] as const) {
      await clearGroups(database.client);
      [worker = 0] = await addWorkers(database.client);
      const ids = await addGrouped(database.client, of('a', 2));
      const { jobs } = await claim({ limits, limit: 1 }, serial);
      await finish(jobs, { state: 'discarded', serial });
      expect(idsOf((await claim({ limits }, serial)).jobs)).toEqual(serial === 'end' ? ids.slice(1) : []);
    }
  });

  test('a job that another transaction has locked, or of another kind, holds up those behind it', async () => {
    const [first = 0] = await addGrouped(database.client, [...of('a', 2), ...of('b', 1)]);
    await addGrouped(database.client, [{ group: 'c', kind: 'other' }, { group: 'c' }]);
    const [app] = await twoBackends(database);
    await app.client`begin`;
    await app.client`select from queue_jobs where id = ${first} for update`;
    expect((await claim({ limits }, 'end')).jobs.map(({ group }) => group)).toEqual(['b']);
    await app.client`rollback`;
    const { jobs } = await claim({ limits }, 'end');
    expect(jobs.map(({ group }) => group)).toEqual(['a', 'a']);
  });
});

describe('rates', () => {
  const rate = { limit: 3, perMs: HOUR_MS };

  test('a group starts no more than its rate in any window, and goes on when it has passed', async () => {
    await addGrouped(database.client, of('a', 10));
    expect((await claim({ limits: { rate } })).jobs).toHaveLength(3);
    expect((await claim({ limits: { rate } })).jobs).toEqual([]);
    expect((await groupRows(database.client)).a?.ready).toBe('later');
    await hoursPass();
    expect((await claim({ limits: { rate } })).jobs).toHaveLength(3);
  });

  test.each([undefined, 5])(
    'of which more is used up than there is any more starts nothing, run %s',
    async (run) => {
      const limits = { rate: { limit: 5, perMs: 60_000 }, run };
      await addGrouped(database.client, of('a', 10));
      const { jobs } = await claim({ limits });
      expect(jobs).toHaveLength(5);
      await finish(jobs);
      await database.client`
      insert into queue_limits (queue, group_key, rate_limit, rate_per_ms) values ('q', 'a', 2, 60000)`;
      await addGrouped(database.client, of('a', 1));
      expect((await claim({ limits })).jobs).toEqual([]);
    },
  );

  test('what claims before have started counts, a job at a time', async () => {
    await addGrouped(database.client, of('a', 10));
    const limits = { rate: { limit: 3, perMs: HOUR_MS } };
    const counts: number[] = [];
    for (let claims = 0; claims < 4; claims++) counts.push((await claim({ limits, limit: 1 })).jobs.length);
    expect(counts).toEqual([1, 1, 1, 0]);
  });

  test('by costs; one that costs more than the rate takes it all', async () => {
    await addGrouped(database.client, [
      { group: 'a', cost: 2 },
      { group: 'a', cost: 2 },
      { group: 'b', cost: 50 },
      { group: 'b' },
    ]);
    const { jobs } = await claim({ limits: { rate } });
    expect(jobs.map(({ group }) => group).sort()).toEqual(['a', 'b']);
  });
});

describe('of a kind with little room', () => {
  const rooms = new Map([['few', 2]]);

  test('no more is taken than there is room for, and the others from behind it', async () => {
    await addGrouped(database.client, [
      ...Array.from({ length: 5 }, () => ({ group: 'a', kind: 'few' })),
      ...Array.from({ length: 3 }, () => ({ group: 'a' })),
      { group: 'b', kind: 'few' },
      { group: 'b' },
    ]);
    const { jobs, signs } = await claim({ kinds: ['k', 'few'], rooms, limit: 100 });
    expect(jobs.filter(({ kind }) => kind === 'few')).toHaveLength(2);
    expect(jobs.filter(({ kind }) => kind === 'k')).toHaveLength(4);
    expect(signs.has('more')).toBe(true);
    const rest = await claim({ kinds: ['k', 'few'], limit: 100 });
    expect(rest.jobs.map(({ kind }) => kind)).toEqual(['few', 'few', 'few', 'few']);
  });

  test('the others are taken by the next claim, where more than a claim takes stand in front of them', async () => {
    await addGrouped(database.client, [
      ...Array.from({ length: 200 }, () => ({ group: 'a', kind: 'few' })),
      ...Array.from({ length: 3 }, () => ({ group: 'a' })),
    ]);
    const first = await claim({ kinds: ['k', 'few'], rooms, limit: 10 });
    expect(first.jobs.map(({ kind }) => kind)).toEqual(['few', 'few']);
    expect(first.signs.has('more')).toBe(true);
    const next = await claim({ kinds: ['k'], limit: 10 });
    expect(next.jobs.map(({ kind }) => kind)).toEqual(['k', 'k', 'k']);
  });

  test('what there is no room for holds up those behind it where a group keeps its order', async () => {
    await addGrouped(database.client, [
      { group: 'a' },
      ...Array.from({ length: 3 }, () => ({ group: 'a', kind: 'few' })),
      { group: 'a' },
    ]);
    const { jobs } = await claim({ kinds: ['k', 'few'], rooms, limit: 100, limits: { run: 100 } }, 'end');
    expect(jobs.map(({ kind }) => kind)).toEqual(['k', 'few', 'few']);
  });

  test.each([300, 20_000])('%i jobs of kinds that it is not for are passed over', async (count) => {
    await addGrouped(database.client, [{ group: 'a', kind: 'other' }]);
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts, group_key, priority, run_at)
      select 'q', 'other', 'null', 5, 'a', n % 3, now() - interval '1 hour' from generate_series(1, ${count}::int) as n`;
    const ids = await addGrouped(
      database.client,
      Array.from({ length: 30 }, () => ({ group: 'a' })),
    );
    // A few of them stand at the head.
    await database.client`update queue_jobs set priority = 0, run_at = 'epoch' where id = any(${ids.slice(0, 3)})`;
    const { jobs } = await claim({ limit: 20 });
    expect(idsOf(jobs)).toEqual(ids.slice(0, 20));
    expect(idsOf((await claim({ limit: 20 })).jobs)).toEqual(ids.slice(20));
  });
});

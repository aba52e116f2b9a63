import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import {
  createQueue,
  type Database,
  defineJob,
  defineSchedule,
  fixedBackoff,
  type HandlerContext,
  handle,
  handleBatch,
  limitsIn,
  NonRetryableError,
  schedulesIn,
  snooze,
  type TransactionOf,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { drainIn, inTransaction, travel } from 'drizzle-queue/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import { addControlTables, addWorkflowTables } from '../support/control-tables.ts';
import { type UsedTestDatabase, useTestDatabase } from '../support/test-database.ts';
import { DATABASES, useDatabaseOn } from './open-databases.ts';

type Tx = TransactionOf<UsedTestDatabase['db']>;

const queue = createQueue({
  schedules: schedulesIn(control.queueSchedules),
  limits: limitsIn(control, {
    slow: { concurrency: 1, rate: { limit: 1, perMs: 3_600_000 } },
    ledger: { groups: { serial: 'end' } },
  }),
  keys: control.queueKeys,
});
const work = defineJob('work', { payload: unvalidated<string>(), backoff: fixedBackoff(3_600_000) });
// Its retry is never due within a drain, as one with the default backoff may be, whose wait is drawn.
const parent = defineJob('parent', { payload: unvalidated<string>(), backoff: fixedBackoff(3_600_000) });
const HOUR_MS = 3_600_000;

/** Handlers that note what they do. */
function noting(then: (payload: string, attempt: number) => unknown = () => undefined) {
  const done: string[] = [];
  const handlers = [
    handle(work, ({ payload, job }) => {
      done.push(payload);
      return then(payload, job.attempt);
    }),
    handle(parent, async ({ payload, db }: HandlerContext<typeof parent, Tx>) => {
      done.push(payload);
      await queue.enqueue(db, work, `${payload}, child`);
      await queue.enqueue(db, work, `${payload}, later`, { delayMs: 3_600_000 });
    }),
  ];
  return { done, handlers };
}

describe.each(DATABASES)('drainIn on %s', (name) => {
  const database = useDatabaseOn(name);
  const inTx = (run: (tx: Tx) => Promise<void>) => () => inTransaction(database.db, run);

  test(
    'runs due jobs by priority, and their children, and nothing that is scheduled',
    inTx(async (tx) => {
      const { done, handlers } = noting();
      await queue.enqueue(tx, work, 'b');
      await queue.enqueue(tx, parent, 'a', { priority: 0 });
      const drained = await drainIn(tx, { queue, handlers });
      expect(done).toEqual(['a', 'b', 'a, child']);
      expect(drained).toMatchObject({ completed: 3, failed: 0, ran: [{ job: { payload: 'a' } }, {}, {}] });
      expect((await queue.list(tx, { state: 'scheduled' })).jobs).toMatchObject([{ payload: 'a, later' }]);
    }),
  );

  test(
    'runs scheduled jobs up to a time in the order of their times, retries as well',
    inTx(async (tx) => {
      const { done, handlers } = noting((payload, attempt) => {
        if (payload === 'flaky' && attempt === 1) throw new Error('once');
      });
      await queue.enqueue(tx, work, 'in 3 h', { delayMs: 3 * 3_600_000 });
      // Fails in two hours, and then at three again.
      await queue.enqueue(tx, work, 'flaky', { delayMs: 2 * 3_600_000 - 60_000 });
      await queue.enqueue(tx, parent, 'in 1 h', { delayMs: 3_600_000 });
      await queue.enqueue(tx, work, 'in 5 h', { delayMs: 5 * 3_600_000 });
      const options = { queue, handlers, until: { hours: 4 }, failFast: false };
      const { completed, failed, discarded } = await drainIn(tx, options);
      expect(done).toEqual(['in 1 h', 'in 1 h, child', 'flaky', 'in 1 h, later', 'flaky', 'in 3 h']);
      expect({ completed, failed, discarded }).toEqual({ completed: 5, failed: 1, discarded: 0 });
      // Four hours have passed for those that are left.
      const [left] = (await queue.list(tx, { state: 'scheduled' })).jobs;
      expect(left?.payload).toBe('in 5 h');
      expect((left?.runAt?.getTime() ?? 0) - Date.now()).toBeLessThan(3_600_000 + 5_000);
    }),
  );

  test(
    'takes a Date as well, by the clock of the database',
    inTx(async (tx) => {
      const { done, handlers } = noting();
      await queue.enqueue(tx, work, 'soon', { delayMs: 60_000 });
      await queue.enqueue(tx, work, 'late', { delayMs: 600_000 });
      await drainIn(tx, { queue, handlers, until: new Date(Date.now() - 60_000) });
      expect(done).toEqual([]);
      await drainIn(tx, { queue, handlers, until: new Date(Date.now() + 300_000) });
      expect(done).toEqual(['soon']);
    }),
  );

  test(
    'undoes what a failed attempt has written, and counts how attempts end',
    inTx(async (tx) => {
      const failing = handle(parent, async ({ payload, db }: HandlerContext<typeof parent, Tx>) => {
        await queue.enqueue(db, work, 'undone');
        throw payload === 'final' ? new NonRetryableError('no') : new Error('again');
      });
      const { done, handlers } = noting();
      await queue.enqueue(tx, parent, 'final');
      await queue.enqueue(tx, parent, 'retried');
      await queue.enqueue(tx, parent, 'last', { maxAttempts: 1 });
      const both = [failing, ...handlers.slice(0, 1)];
      const drained = await drainIn(tx, { queue, handlers: both, failFast: false });
      expect(drained).toMatchObject({ completed: 0, failed: 3, discarded: 2 });
      expect(done).toEqual([]);
      expect((await queue.list(tx, { state: 'discarded' })).jobs).toHaveLength(2);
    }),
  );

  test(
    'throws what a handler throws, a mistake in it as well',
    inTx(async (tx) => {
      await queue.enqueue(tx, work, 'a');
      const { handlers } = noting(() => {
        // @ts-expect-error a typing error
        return notDefined;
      });
      await expect(drainIn(tx, { queue, handlers })).rejects.toThrow(ReferenceError);
      expect((await queue.list(tx)).jobs).toMatchObject([{ state: 'scheduled', attempt: 1 }]);
    }),
  );

  test(
    'ends when a job never does',
    inTx(async (tx) => {
      const { id } = await queue.enqueue(tx, work, 'again');
      const { done, handlers } = noting(() => snooze(0));
      await expect(drainIn(tx, { queue, handlers, max: 7 })).rejects.toThrow(
        `drainIn has run 7 attempts, and job ${id} of 'default' is still due`,
      );
      expect(done).toHaveLength(7);
    }),
  );

  test(
    'leaves jobs of other kinds, of other queues and of paused ones',
    inTx(async (tx) => {
      const { done, handlers } = noting();
      await queue.enqueue(tx, defineJob('unserved'));
      await queue.enqueue(tx, work, 'elsewhere', { queue: 'elsewhere' });
      await queue.enqueue(tx, work, 'paused', { queue: 'stopped' });
      await queue.enqueue(tx, work, 'here');
      await queue.pause(tx, 'stopped');
      await drainIn(tx, { queue, handlers, queues: ['default', 'stopped'], leave: ['unserved'] });
      expect(done).toEqual(['here']);
      await drainIn(tx, { queue, handlers, leave: ['unserved'] });
      expect(done).toEqual(['here', 'elsewhere']);
    }),
  );

  test(
    'throws at the end for a due job without a handler, unless its kind is left by name',
    inTx(async (tx) => {
      const { done, handlers } = noting();
      await queue.enqueue(tx, defineJob('unserved'));
      await queue.enqueue(tx, defineJob('later'), undefined, { delayMs: 3_600_000 });
      await queue.enqueue(tx, work, 'here');
      await expect(drainIn(tx, { queue, handlers })).rejects.toThrow(
        /^drainIn has no handler of the kind 'unserved', and job \d+ is due\. .*leave: \['unserved'\]$/,
      );
      expect(done).toEqual(['here']);
      await drainIn(tx, { queue, handlers, leave: ['unserved'] });
      const until = { hours: 2 };
      await expect(drainIn(tx, { queue, handlers, leave: ['unserved'], until })).rejects.toThrow(
        "kind 'later'",
      );
      // @ts-expect-error not a list
      await expect(drainIn(tx, { queue, handlers, leave: 'later' })).rejects.toThrow('an array of kinds');
    }),
  );

  test(
    'waits for no rate',
    inTx(async (tx) => {
      const { done, handlers } = noting();
      await queue.enqueueMany(
        tx,
        work,
        ['a', 'b', 'c'].map((payload) => ({ payload, queue: 'slow' })),
      );
      await drainIn(tx, { queue, handlers });
      expect(done).toEqual(['a', 'b', 'c']);
    }),
  );

  test(
    'keeps the order of a group, whose jobs wait for the retry of the first',
    inTx(async (tx) => {
      const { done, handlers } = noting((payload, attempt) => {
        if (payload === 'a1' && attempt === 1) throw new Error('once');
      });
      const enqueue = (payload: string, group: string) =>
        queue.enqueue(tx, work, payload, { queue: 'ledger', group });
      await enqueue('a1', 'a');
      await enqueue('a2', 'a');
      await enqueue('b1', 'b');
      const { ran } = await drainIn(tx, { queue, handlers, failFast: false });
      expect(done).toEqual(['a1', 'b1']);
      expect(ran[0]?.job.group).toBe('a');
      await drainIn(tx, { queue, handlers, until: { hours: 2 } });
      expect(done).toEqual(['a1', 'b1', 'a1', 'a2']);
    }),
  );

  test(
    'holds a group up behind a job that nobody serves',
    inTx(async (tx) => {
      const { done, handlers } = noting();
      const options = { queue: 'ledger', group: 'a' };
      await queue.enqueue(tx, defineJob('unserved'), undefined, options);
      await queue.enqueue(tx, work, 'behind', options);
      await drainIn(tx, { queue, handlers, leave: ['unserved'] });
      expect(done).toEqual([]);
      await drainIn(tx, { queue, handlers: [...handlers, handle(defineJob('unserved'), () => {})] });
      expect(done).toEqual(['behind']);
    }),
  );

  test(
    'fires the schedules of the transaction, tick by tick',
    inTx(async (tx) => {
      const daily = defineSchedule('daily', { job: work, payload: 'tick', cron: '0 9 * * *' });
      const other = defineSchedule('other', { job: defineJob('unserved'), every: 60_000 });
      await queue.schedules.set(tx, daily);
      await queue.schedules.set(tx, other);
      const { done, handlers } = noting();
      const { ran } = await drainIn(tx, { queue, handlers, until: { days: 3 } });
      expect(done).toEqual(['tick', 'tick', 'tick']);
      const ticks = ran.map(({ job }) => new Date(String(job.metadata.tick)));
      expect(ticks.every((tick) => tick.getUTCHours() === 9 && tick.getTime() > Date.now() - 60_000)).toBe(
        true,
      );
      // Three days have passed for it: nothing is due at once.
      await drainIn(tx, { queue, handlers });
      expect(done).toHaveLength(3);
    }),
  );

  // In hours from the beginning; the handler sets the schedule after ten and a half.
  test.each([
    { as: 'new', before: undefined, ticks: [11.5, 12.5, 13.5] },
    { as: 'in place of another', before: 24, ticks: [11, 12, 13] },
    { as: 'as it was', before: 1, ticks: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13] },
  ])('fires no tick from before a handler has set its schedule, $as', async ({ before, ticks }) => {
    await inTransaction(database.db, async (tx: Tx) => {
      const everyHours = (hours: number) =>
        defineSchedule('of hours', {
          job: work,
          payload: 'tick',
          every: hours * HOUR_MS,
          catchUp: 'all',
        });
      const beginMs = Date.now();
      if (before !== undefined) await queue.schedules.set(tx, everyHours(before));
      await queue.enqueue(tx, parent, 'sets', { delayMs: 10.5 * HOUR_MS });
      const setting = handle(parent, async ({ db }: HandlerContext<typeof parent, Tx>) => {
        await queue.schedules.set(db, everyHours(1));
      });
      const handlers = [setting, handle(work, () => {})];
      const { ran } = await drainIn(tx, { queue, handlers, until: { hours: 13.75 } });
      const fired = ran
        .filter(({ job }) => job.kind === work.kind)
        .map(({ job }) => Date.parse(String(job.metadata.tick)) - beginMs);
      expect(fired.map((ms) => Math.round((ms / HOUR_MS) * 10) / 10)).toEqual(ticks);
      // The next one is as far as that.
      const later = await drainIn(tx, { queue, handlers, until: { hours: 1 } });
      expect(later.ran).toHaveLength(1);
    });
  });

  test(
    'gives a job that a handler enqueues by runNow the time of the drain as its tick',
    inTx(async (tx) => {
      const yearly = defineSchedule('yearly', { job: work, payload: 'tick', cron: '0 0 1 1 *' });
      await queue.schedules.set(tx, yearly);
      await queue.enqueue(tx, parent, 'runs it', { delayMs: 10 * HOUR_MS });
      const given = new Date('2020-01-01');
      const running = handle(parent, async ({ db }: HandlerContext<typeof parent, Tx>) => {
        await queue.schedules.runNow(db, 'yearly');
        await queue.schedules.runNow(db, 'yearly', { tick: given });
      });
      const beginMs = Date.now();
      const handlers = [running, handle(work, () => {})];
      const { ran } = await drainIn(tx, { queue, handlers, until: { hours: 11 } });
      const ticks = ran.flatMap(({ job }) => (job.kind === 'work' ? [String(job.metadata.tick)] : []));
      const ranMs = Date.parse(ticks[0] ?? '') - beginMs;
      expect(ranMs).toBeGreaterThan(10 * HOUR_MS - 60_000);
      expect(ranMs).toBeLessThan(10 * HOUR_MS + 60_000);
      expect(ticks.slice(1)).toEqual([given.toISOString()]);
    }),
  );

  test(
    'fires no tick after the time that it is to end at, however long the handlers take',
    inTx(async (tx) => {
      const secondly = defineSchedule('secondly', { job: work, payload: 'tick', every: 1_000 });
      await queue.schedules.set(tx, secondly);
      await queue.enqueue(tx, parent, 'of the fourth second', { delayMs: 4_000 });
      const beginMs = Date.now();
      // Longer than what is left until the end, by any clock.
      const slow = handle(parent, () => sleep(1_500));
      const { ran } = await drainIn(tx, {
        ...{ queue, handlers: [slow, handle(work, () => {})] },
        until: { seconds: 5 },
      });
      const ticks = ran.flatMap(({ job }) => (job.kind === 'work' ? [String(job.metadata.tick)] : []));
      expect(ticks).toHaveLength(5);
      for (const tick of ticks) expect(Date.parse(tick)).toBeLessThan(beginMs + 6_000);
    }),
  );

  test(
    'lets as much time pass as it is to, whatever its handlers take of it',
    inTx(async (tx) => {
      await queue.enqueue(tx, work, 'first', { delayMs: HOUR_MS });
      const delayMs = 2 * HOUR_MS + 1_000;
      await queue.enqueue(tx, work, 'after the end', { delayMs });
      await queue.enqueue(tx, work, 'also after it', { debounce: { key: 'a', delayMs } });
      const { done, handlers } = noting(() => sleep(1_500));
      await drainIn(tx, { queue, handlers, until: { hours: 2 } });
      expect(done).toEqual(['first']);
    }),
  );

  test(
    'runs what its handlers put off until just then, however long they take',
    inTx(async (tx) => {
      const ran: string[] = [];
      const handlers = [
        handle(parent, async ({ payload, db }: HandlerContext<typeof parent, Tx>) => {
          ran.push(payload);
          await sleep(1_500);
          await queue.enqueue(db, work, 'child', { delayMs: HOUR_MS });
        }),
        handle(work, async ({ payload, job }) => {
          ran.push(payload);
          if (payload === 'again' && job.attempt === 1) return snooze(HOUR_MS);
        }),
      ];
      await queue.enqueue(tx, parent, 'a', { delayMs: HOUR_MS });
      await queue.enqueue(tx, work, 'again', { delayMs: HOUR_MS });
      // By the database's clock, which goes on while handlers run, it comes before the child.
      await queue.enqueue(tx, work, 'between', { delayMs: 2 * HOUR_MS + 1_000 });
      await drainIn(tx, { queue, handlers, until: { hours: 2 } });
      expect(ran.filter((payload) => payload !== 'between').toSorted()).toEqual([
        ...['a', 'again', 'again', 'child'],
      ]);
    }),
  );

  test.each(['debounces', 'replaces'])(
    'runs just then also a job from before it that a handler %s, however long that takes',
    async (how) => {
      await inTransaction(database.db, async (tx: Tx) => {
        const ran: string[] = [];
        const key = 'a';
        const put = async (db: Tx, payload: string, delayMs: number) => {
          const rule = how === 'debounces' ? { debounce: { key, delayMs } } : { delayMs, replace: { key } };
          return await queue.enqueue(db, work, payload, rule);
        };
        const handlers = [
          handle(parent, async ({ db }: HandlerContext<typeof parent, Tx>) => {
            await sleep(100);
            expect(await put(db, 'later', HOUR_MS)).toMatchObject({ outcome: 'replaced' });
          }),
          handle(work, ({ payload }) => void ran.push(payload)),
        ];
        await put(tx, 'before', 90 * 60_000);
        await queue.enqueue(tx, parent, 'puts it off', { delayMs: HOUR_MS });
        await drainIn(tx, { queue, handlers, until: { hours: 2 } });
        expect(ran).toEqual(['later']);
      });
    },
  );

  test(
    'moves what has ended back by as much as has passed since its end',
    inTx(async (tx) => {
      const { handlers } = noting();
      const hours = [1, 2, 3, 4, 5];
      for (const hour of hours) await queue.enqueue(tx, work, `in ${hour} h`, { delayMs: hour * HOUR_MS });
      await queue.pause(tx, 'stopped');
      await drainIn(tx, { queue, handlers, until: { hours: 6 } });
      const { jobs } = await queue.list(tx, { state: 'completed' });
      const ago = (date: Date | null | undefined) => Math.round((Date.now() - Number(date)) / HOUR_MS);
      const ofEnds = jobs.map((job) => [job.payload, ago('finishedAt' in job ? job.finishedAt : null)]);
      expect(new Map(ofEnds as [string, number][])).toEqual(
        new Map(hours.map((hour) => [`in ${hour} h`, 6 - hour])),
      );
      for (const { createdAt } of jobs) expect(ago(createdAt)).toBe(6);
      expect((await queue.paused(tx)).map(({ pausedAt }) => ago(pausedAt))).toEqual([6]);
    }),
  );

  test.each(['a failed attempt', 'the most attempts'])(
    'moves what has ended back also where it throws: at %s',
    async (end) => {
      await inTransaction(database.db, async (tx: Tx) => {
        const { handlers } = noting((payload) => {
          if (payload === 'in 10 h') throw new Error('no');
        });
        const { id } = await queue.enqueue(tx, work, 'in 1 h', { delayMs: HOUR_MS });
        await queue.enqueue(tx, work, 'in 10 h', { delayMs: 10 * HOUR_MS });
        const max = end === 'the most attempts' ? 1 : 100;
        await expect(drainIn(tx, { queue, handlers, until: { hours: 12 }, max })).rejects.toThrow();
        const job = await queue.find(tx, id);
        const finishedAt = job !== undefined && 'finishedAt' in job ? job.finishedAt : null;
        expect(Math.round((Date.now() - Number(finishedAt)) / HOUR_MS)).toBe(9);
      });
    },
  );

  test(
    'writes what has ended once more for all of its steps, however many they are',
    inTx(async (tx) => {
      const hourly = defineSchedule('hourly', { job: work, payload: 'tick', every: HOUR_MS });
      await queue.schedules.set(tx, hourly);
      const { done, handlers } = noting();
      const updated = async () => {
        const rows: { updated: number }[] = await tx.execute(sql`
          select pg_stat_get_xact_tuples_updated('queue_results'::regclass)::int as updated`);
        return (Array.isArray(rows) ? rows : Object(rows).rows)[0].updated;
      };
      const before = await updated();
      await drainIn(tx, { queue, handlers, until: { hours: 20, minutes: 30 } });
      expect(done).toHaveLength(20);
      expect((await updated()) - before).toBe(20);
    }),
  );

  test(
    'gives a batch handler one job at a time',
    inTx(async (tx) => {
      const sizes: number[] = [];
      const handlers = [handleBatch(work, { maxSize: 10 }, (jobs) => void sizes.push(jobs.length))];
      await queue.enqueueMany(tx, work, [{ payload: 'a' }, { payload: 'b' }]);
      expect(await drainIn(tx, { queue, handlers })).toMatchObject({ completed: 2 });
      expect(sizes).toEqual([1, 1]);
    }),
  );

  test(
    'finishes a job by complete(tx) of the handler',
    inTx(async (tx) => {
      const { id } = await queue.enqueue(tx, work, 'a');
      const completing = handle(work, async ({ db, complete }) => {
        await db.transaction((inner) => complete(inner, 'done'));
      });
      expect(await drainIn(tx, { queue, handlers: [completing] })).toMatchObject({ completed: 1 });
      expect(await queue.find(tx, id)).toMatchObject({ state: 'completed', output: 'done' });
    }),
  );

  test(
    'goes on after a handler that was left behind',
    inTx(async (tx) => {
      const hanging = defineJob('hanging', { timeoutMs: 20, maxAttempts: 1 });
      await queue.enqueue(tx, hanging);
      await queue.enqueue(tx, work, 'after');
      const { done, handlers } = noting();
      const never = handle(hanging, () => new Promise<void>(() => {}));
      const drained = await drainIn(tx, { queue, handlers: [never, ...handlers], failFast: false });
      expect(drained).toMatchObject({ completed: 1, failed: 1, discarded: 1 });
      expect(done).toEqual(['after']);
    }),
  );
});

describe('drainIn beside others', () => {
  const database = useTestDatabase();
  beforeAll(() => addControlTables(database));

  test('leaves what they have committed, unless it is asked for all', async () => {
    await queue.enqueue(database.db, work, 'theirs');
    await queue.schedules.set(
      database.db,
      defineSchedule('theirs', { job: work, payload: 'tick', every: 1_000 }),
    );
    await inTransaction(database.db, async (tx) => {
      const { done, handlers } = noting();
      await queue.enqueue(tx, work, 'ours');
      await drainIn(tx, { queue, handlers, until: { seconds: 2 } });
      expect(done).toEqual(['ours']);
      await drainIn(tx, { queue, handlers, all: true });
      expect(done.slice(0, 2)).toEqual(['ours', 'theirs']);
    });
    await queue.schedules.remove(database.db, 'theirs');
    expect((await queue.list(database.db)).jobs).toMatchObject([{ payload: 'theirs', state: 'due' }]);
  });

  test('leaves what waits for a job that they have ended and that is not counted', async () => {
    await addWorkflowTables(database);
    const flows = createQueue({ workflows: workflowsIn(workflowTables) });
    const enqueueFlow = async (db: Database, whose: string) => {
      const { jobIds } = await flows.workflows.enqueueFlow(db, (flow) => {
        const first = flow.add(parent, `${whose}, first`);
        flow.add(work, `${whose}, last`, { after: [first], onFailure: 'run' });
      });
      return jobIds as [number, number];
    };
    const [first, last] = await enqueueFlow(database.db, 'theirs');
    await flows.cancel(database.db, first);
    await inTransaction(database.db, async (tx) => {
      const ran: string[] = [];
      const handlers = [parent, work].map((job) => handle(job, ({ payload }) => void ran.push(payload)));
      await enqueueFlow(tx, 'ours');
      await drainIn(tx, { queue: flows, handlers, until: { hours: 1 } });
      expect(ran).toEqual(['ours, first', 'ours, last']);
      await flows.enqueue(tx, parent, 'alone');
      await drainIn(tx, { queue: flows, handlers: handlers.slice(0, 1) });
      expect(ran.slice(2)).toEqual(['alone']);
      await drainIn(tx, { queue: flows, handlers, all: true });
      expect(ran.slice(3)).toContain('theirs, last');
    });
    expect(await flows.find(database.db, last)).toMatchObject({ state: 'waiting', attempt: 0 });
    await flows.cancel(database.db, last);
  });

  // In hours from the beginning; the handler sets the schedule after this many.
  test.each([
    { after: 0, ticks: [1, 2, 3] },
    { after: 1.5, ticks: [2, 3] },
  ])('fires a schedule that they have committed once a handler has set it, after $after h', async (each) => {
    const hourly = defineSchedule('hourly', { job: work, payload: 'tick', every: HOUR_MS, catchUp: 'all' });
    const beginMs = Date.now();
    await queue.schedules.set(database.db, hourly);
    await inTransaction(database.db, async (tx) => {
      const setting = handle(parent, async ({ payload, db }: HandlerContext<typeof parent, Tx>) => {
        // What failed is undone, and the schedule is theirs again.
        const again = payload === 'fails' ? { ...hourly, payload: 'undone' } : hourly;
        await queue.schedules.set(db, again);
        if (payload === 'fails') throw new NonRetryableError('no');
      });
      await queue.enqueue(tx, parent, 'fails');
      await queue.enqueue(tx, parent, 'sets', { delayMs: each.after * HOUR_MS });
      const options = { queue, handlers: [setting, handle(work, () => {})], failFast: false };
      const { ran } = await drainIn(tx, { ...options, until: { hours: 3.5 } });
      const ticks = ran.flatMap(({ job }) => (job.kind === 'work' ? [String(job.metadata.tick)] : []));
      const hours = ticks.map((tick) => (Date.parse(tick) - beginMs) / HOUR_MS);
      expect(hours.map((hour) => Math.round(hour * 10) / 10)).toEqual(each.ticks);
      // The next one is as far as that.
      expect((await drainIn(tx, { ...options, until: { hours: 1 } })).ran).toHaveLength(1);
    });
    await queue.schedules.remove(database.db, 'hourly');
  });

  test('fires no schedule that they commit meanwhile', async () => {
    const theirs = defineSchedule('theirs', { job: work, payload: 'theirs', every: HOUR_MS });
    const ours = defineSchedule('ours', { job: parent, payload: 'ours', every: HOUR_MS });
    await inTransaction(database.db, async (tx) => {
      const ran: string[] = [];
      const handlers = [
        handle(parent, async ({ payload }) => {
          ran.push(payload);
          if (ran.length === 1) await queue.schedules.set(database.db, theirs);
        }),
        handle(work, ({ payload }) => void ran.push(payload)),
      ];
      await queue.schedules.set(tx, ours);
      await drainIn(tx, { queue, handlers, until: { hours: 3.5 } });
      expect(ran).toEqual(['ours', 'ours', 'ours']);
    });
    expect(await queue.schedules.remove(database.db, 'theirs')).toBe(true);
  });

  test('takes a job that they have committed once it was debounced or replaced here', async () => {
    const key = 'older';
    const hour = { delayMs: HOUR_MS };
    const rules = [{ debounce: { key, ...hour } }, { ...hour, replace: { key } }];
    const { id } = await queue.enqueue(database.db, work, 'theirs', { debounce: { key, delayMs: 1_000 } });
    for (const rule of rules) {
      await inTransaction(database.db, async (tx) => {
        const { done, handlers } = noting();
        await drainIn(tx, { queue, handlers, until: { hours: 2 } });
        expect(done).toEqual([]);
        expect(await queue.enqueue(tx, work, 'ours', rule)).toMatchObject({ id, outcome: 'replaced' });
        await drainIn(tx, { queue, handlers, until: { minutes: 59 } });
        expect(done).toEqual([]);
        await drainIn(tx, { queue, handlers, until: { minutes: 1 } });
        expect(done).toEqual(['ours']);
      });
      await inTransaction(database.db, async (tx) => {
        const { done, handlers } = noting();
        const putting = handle(parent, async ({ db }: HandlerContext<typeof parent, Tx>) => {
          await sleep(100);
          await queue.enqueue(db, work, 'of a handler', rule);
        });
        await queue.enqueue(tx, parent, 'puts it off');
        await drainIn(tx, { queue, handlers: [putting, ...handlers.slice(0, 1)], until: { hours: 1 } });
        expect(done).toEqual(['of a handler']);
      });
      expect(await queue.find(database.db, id)).toMatchObject({ payload: 'theirs', attempt: 0 });
    }
    await queue.cancel(database.db, id);
  });

  test('takes none that another transaction has claimed, and waits for none', async () => {
    const [beside] = await database.connect();
    const { id } = await queue.enqueue(database.db, work, 'locked');
    await beside?.db.transaction(async (other) => {
      await other.select().from(queueJobs).for('update');
      await inTransaction(database.db, async (tx) => {
        const { done, handlers } = noting();
        await queue.enqueue(tx, work, 'ours');
        await drainIn(tx, { queue, handlers, all: true });
        expect(done).toEqual(['ours']);
      });
    });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0 });
  });

  test('two at once in one database do not meet', async () => {
    const connections = await database.connect(2);
    const drained = await Promise.all(
      connections.map(({ db }, at) =>
        inTransaction(db, async (tx) => {
          const { done, handlers } = noting();
          await queue.enqueueMany(
            tx,
            work,
            Array.from({ length: 20 }, (_, n) => ({ payload: `${at}-${n}`, delayMs: n * 60_000 })),
          );
          await drainIn(tx, { queue, handlers, until: { hours: 1 } });
          return done;
        }),
      ),
    );
    expect(drained).toEqual([0, 1].map((at) => Array.from({ length: 20 }, (_, n) => `${at}-${n}`)));
  });
});

describe('travel', () => {
  const database = useTestDatabase();

  test('makes due in a transaction what that has enqueued, and moves nothing else', async () => {
    await addControlTables(database);
    const theirs = await queue.enqueue(database.db, work, 'theirs', { delayMs: 3_600_000 });
    const before = await queue.find(database.db, theirs.id);
    await inTransaction(database.db, async (tx) => {
      const { id } = await queue.enqueue(tx, work, 'ours', { delayMs: 86_400_000 });
      await travel(tx, queue, { hours: 23 });
      expect(await queue.find(tx, id)).toMatchObject({ state: 'scheduled' });
      await travel(tx, queue, { hours: 1, ms: 1 });
      expect(await queue.find(tx, id)).toMatchObject({ state: 'due' });
      expect(await queue.find(tx, theirs.id)).toEqual(before);
      await travel(tx, queue, { hours: 2 }, { all: true });
      expect(await queue.find(tx, theirs.id)).toMatchObject({ state: 'due' });
    });
    expect(await queue.find(database.db, theirs.id)).toEqual(before);
  });

  test('moves everything of a database', async () => {
    const { id } = await queue.enqueue(database.db, work, 'a', { delayMs: 3_600_000 });
    await travel(database.db, queue, { hours: 2 });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due' });
  });

  test('opens the window of a throttle', async () => {
    await inTransaction(database.db, async (tx) => {
      const throttle = { key: 'a', perMs: 3_600_000 };
      const enqueue = async () => (await queue.enqueue(tx, work, 'a', { throttle })).outcome;
      expect([await enqueue(), await enqueue()]).toEqual(['enqueued', 'throttled']);
      await travel(tx, queue, { hours: 1 });
      expect(await enqueue()).toBe('enqueued');
    });
  });

  test('lets a schedule catch up as if nobody had worked', async () => {
    await inTransaction(database.db, async (tx) => {
      const schedule = { job: work, payload: 'tick', cron: '*/10 * * * *' } as const;
      await queue.schedules.set(tx, defineSchedule('all', { ...schedule, catchUp: 'all' }));
      await queue.schedules.set(tx, defineSchedule('latest', schedule));
      await travel(tx, queue, { hours: 1 });
      const { done, handlers } = noting();
      await drainIn(tx, { queue, handlers });
      // Six of one and the newest of the other.
      expect(done).toHaveLength(7);
    });
  });

  test('refuses what is no time to come', async () => {
    const wrong = (by: object) => travel(database.db, queue, by);
    await expect(wrong({ hour: 1 })).rejects.toThrow(
      "travel: the time to pass: unknown option 'hour'; did you mean hours?",
    );
    await expect(wrong({ hours: -1 })).rejects.toThrow(RangeError);
    await expect(wrong({})).rejects.toThrow(RangeError);
  });
});

describe('drainIn refuses', () => {
  const database = useTestDatabase();
  const { handlers } = noting();

  test('a database, and options that are wrong', async () => {
    // @ts-expect-error no transaction
    await expect(drainIn(database.db, { queue, handlers })).rejects.toThrow(
      'drainIn takes a transaction, as db.transaction(async (tx) => …) or inTransaction hands it over; ' +
        'on a database of its own, use drain',
    );
    await inTransaction(database.db, async (tx) => {
      const wrong = (options: object) => drainIn(tx, { queue, handlers, ...options });
      await expect(wrong({ maximum: 1 })).rejects.toThrow("drainIn: unknown option 'maximum'");
      await expect(wrong({ max: 0 })).rejects.toThrow(
        'drainIn: max must be a whole number from 1 to 1000000',
      );
      await expect(wrong({ until: new Date('9999-06-01') })).rejects.toThrow('drainIn: until must be');
      await expect(wrong({ until: new Date(Number.NaN) })).rejects.toThrow(
        'drainIn: until must be a valid Date',
      );
      await expect(wrong({ queues: [] })).rejects.toThrow('drainIn: queues must be an array of names');
      await expect(wrong({ failFast: 1 })).rejects.toThrow('drainIn: failFast must be true or false');
    });
  });
});

import {
  createQueue,
  createWorker,
  defineJob,
  drain,
  handle,
  limitsIn,
  runNext,
  unvalidated,
  type Worker,
  type WorkerEvents,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { addJobs, clearTables, jobRow, tables } from '../../queries/support/jobs.ts';
import { addControlTables } from '../../support/control-tables.ts';
import { gate } from '../../support/gate.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase({ max: 20 });
const queue = createQueue({ tables });
const work = defineJob('k', { queue: 'q', payload: unvalidated<number>() });

beforeAll(() => addControlTables(database));
beforeEach(() => clearTables(database.client));
const workers: Pick<Worker, 'stop'>[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.stop()));
  await repair();
  await database.client`delete from queue_jobs`;
});

/** The app's own constraint, which these rows break: it was added without a look at the rows that were there. */
async function constrain(...payloads: readonly number[]): Promise<void> {
  await database.client.unsafe(
    `alter table queue_jobs add constraint is_good check (payload::text::int not in (${payloads})) not valid`,
  );
}

/** The app's own trigger, which refuses every change of these rows, or only some. */
async function trap(payloads: readonly number[], when = 'true'): Promise<void> {
  await database.client.unsafe(`
    create function refuse() returns trigger language plpgsql as $$ begin
      if new.payload::text::int in (${payloads}) and ${when} then raise exception 'no'; end if;
      return new;
    end $$`);
  await database.client.unsafe(
    'create trigger refuse before update on queue_jobs for each row execute function refuse()',
  );
}

async function repair(): Promise<void> {
  await database.client`drop function if exists refuse() cascade`;
  await database.client`alter table queue_jobs drop constraint if exists is_good`;
}

const numbers = (count: number) => Array.from({ length: count }, (_, payload) => ({ payload }));

/** A worker that counts, and what it says of its errors. */
function working(concurrency = 10, more: { readonly payloads?: number[] } = {}) {
  const worker = createWorker(database.db, {
    queue,
    handlers: [handle(work, ({ payload }) => void more.payloads?.push(payload))],
    queues: { q: { concurrency } },
  });
  workers.push(worker);
  const errors: WorkerEvents['error'][0][] = [];
  const seen = { completed: 0 };
  worker.on('error', (told) => errors.push(told));
  worker.on('completed', () => seen.completed++);
  return { worker, errors, seen };
}

const duringOf = (id: number) => `claiming job ${id} ('k') from 'q'; it sets the job aside`;

describe('a row that refuses its claim', () => {
  test.each([
    ['by a constraint that is not valid', (bad: number[]) => constrain(...bad)],
    ['by a trigger that raises', (bad: number[]) => trap(bad)],
  ])('%s, among 1,000, costs only itself, is named once, and runs when it is repaired', async (_, refuse) => {
    const ids = await addJobs(database.client, numbers(1_000));
    await refuse([3]);
    const { worker, errors, seen } = working();
    await worker.start();
    await until(() => seen.completed === 999 && errors.length > 0);
    const bad = ids[3] ?? 0;
    // Tried again, in vain, and not told of again.
    await until(async () => errors.length === 1 && (await jobRow(database.client, bad))?.attempt === 0);
    expect(errors).toEqual([{ error: expect.anything(), during: duringOf(bad) }]);
    expect(await queue.find(database.db, bad)).toMatchObject({ state: 'due', attempt: 0 });
    await repair();
    await until(() => seen.completed === 1_000);
    await worker.stop();
    expect(errors).toHaveLength(1);
    expect(await queue.find(database.db, bad)).toMatchObject({ state: 'completed', attempt: 1 });
  });

  test('and others beside it cost only themselves, also at the head and one after the other', async () => {
    // More than half of them.
    const bad = Array.from({ length: 100 }, (_, at) => at).filter((at) => at < 30 || at % 3 !== 0);
    const ids = await addJobs(database.client, numbers(100));
    await constrain(...bad);
    const { worker, errors, seen } = working();
    await worker.start();
    await until(() => seen.completed === 100 - bad.length && errors.length === bad.length);
    await worker.stop();
    expect(new Set(errors.map(({ during }) => during))).toEqual(
      new Set(bad.map((at) => duringOf(ids[at] ?? 0))),
    );
  });

  test('holds up neither of two workers, nor newcomers that are more urgent', async () => {
    await addJobs(database.client, numbers(200));
    await constrain(0, 100);
    const [one, two] = [working(), working()];
    await Promise.all([one.worker.start(), two.worker.start()]);
    await until(() => one.seen.completed + two.seen.completed === 198);
    await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: 100 }, () => ({ payload: 1_000, priority: 0 })),
    );
    await until(() => one.seen.completed + two.seen.completed === 298);
    await Promise.all([one.worker.stop(), two.worker.stop()]);
  });

  test('behind the floor is not swept up again and again', async () => {
    const { worker, errors, seen } = working();
    await worker.start();
    await queue.enqueueMany(database.db, work, numbers(10));
    await until(() => seen.completed === 10);
    const late = await database.client.begin(async (tx) => {
      const [row] = await tx<{ id: string }[]>`
        insert into queue_jobs (queue, kind, payload, priority, run_at, max_attempts)
        values ('q', 'k', '80', 5, now() - interval '1 hour', 20) returning id`;
      await tx`alter table queue_jobs add constraint is_good check (payload::text::int <> 80) not valid`;
      return Number(row?.id);
    });
    await until(() => errors.some(({ during }) => during === duringOf(late)));
    await addJobs(database.client, [{ payload: 81, dueInMs: -3_600_000 }]);
    await until(() => seen.completed === 11);
    expect(errors).toHaveLength(1);
    await repair();
    await until(() => seen.completed === 12);
    await worker.stop();
  });

  test('is parked with the reason where the database allows that, and runs again by runNow', async () => {
    const ids = await addJobs(database.client, numbers(20));
    await trap([3], 'new.worker_id is not null');
    const bad = ids[3] ?? 0;
    const { worker, seen } = working();
    await worker.start();
    await until(async () => (await queue.find(database.db, bad))?.state === 'waiting');
    expect(await queue.find(database.db, bad)).toMatchObject({
      attempt: 0,
      runAt: null,
      errors: [
        {
          attempt: 1,
          name: 'ClaimRefusedError',
          message: 'The database refuses to let a worker claim this job: no',
          at: expect.any(String),
        },
      ],
    });
    expect(await queue.runNow(database.db, bad)).toEqual({ due: true });
    // Still refused: it is parked again, once others were claimed.
    await addJobs(database.client, numbers(3));
    await until(async () => ((await queue.find(database.db, bad))?.errors.length ?? 0) === 2);
    await until(() => seen.completed === 22);
    // A worker that lives tries a job once more when it has parked it, and would run one that is repaired by then.
    await worker.stop();
    await repair();
    expect(await queue.runNowMany(database.db, [bad])).toEqual({ due: 1, locked: 0 });
    const another = working();
    await another.worker.start();
    await until(() => another.seen.completed === 1);
    await another.worker.stop();
  });

  test('is not set aside where all of them refuse: once that is over, all run', async () => {
    await addJobs(database.client, numbers(300));
    await trap([-1], 'false or new.worker_id is not null');
    await database.client.unsafe(`
      create or replace function refuse() returns trigger language plpgsql as $$ begin
        if new.worker_id is not null then raise exception 'none'; end if; return new;
      end $$`);
    const { worker, errors, seen } = working(100);
    await worker.start();
    await until(() => errors.length >= 2);
    expect(new Set(errors.map(({ during }) => during))).toEqual(new Set([`claiming from 'q'`]));
    await repair();
    await until(() => seen.completed === 300);
    await worker.stop();
  });

  test('does not hold up a drain', async () => {
    await addJobs(database.client, numbers(50));
    await constrain(0, 20);
    const errors: string[] = [];
    const handlers = [handle(work, () => undefined)];
    const log = {
      debug() {},
      info() {},
      warn() {},
      error: (...args: unknown[]) => errors.push(String(args)),
    };
    const result = await drain(database.db, { queue, handlers, deadlineMs: 40_000, log });
    expect(result).toMatchObject({ completed: 48, empty: true });
  });

  test('does not hold up runNext', async () => {
    await addJobs(database.client, numbers(4));
    await constrain(0, 2);
    const ran: number[] = [];
    const handlers = [handle(work, ({ payload }) => void ran.push(payload))];
    const run = () => runNext(database.db, { queue, handlers });
    while ((await run()) !== undefined);
    expect(ran).toEqual([1, 3]);
    await repair();
    await until(async () => (await run()) === undefined && ran.length === 4);
    expect([...ran].sort()).toEqual([0, 1, 2, 3]);
  });
});

describe('a row that refuses its claim, in a group', () => {
  const grouped = createQueue({
    tables,
    limits: limitsIn(control, {
      q: { groups: { concurrency: 1 } },
      s: { groups: { serial: 'end' } },
      f: { groups: 'fair' },
      m: { groups: 'fair', kinds: { render: { concurrency: 1 } } },
    }),
  });
  const inGroups = defineJob('k', {
    queue: 'q',
    payload: unvalidated<number>(),
    group: (payload) => String(payload % 5),
  });
  const inOrder = defineJob('o', {
    queue: 's',
    payload: unvalidated<number>(),
    group: (payload) => String(payload % 5),
  });

  const inFairGroups = (groups: number) =>
    defineJob('f', {
      queue: 'f',
      payload: unvalidated<number>(),
      group: (payload) => String(payload % groups),
    });
  afterEach(async () => {
    await database.client.unsafe(
      'delete from queue_groups; delete from queue_notes; delete from queue_limits',
    );
  });

  test('costs only itself', async () => {
    await grouped.enqueueMany(database.db, inGroups, numbers(50));
    await constrain(0, 7);
    const errors: string[] = [];
    let completed = 0;
    const worker = createWorker(database.db, {
      queue: grouped,
      handlers: [handle(inGroups, () => undefined)],
    });
    worker.on('error', ({ during }) => errors.push(during));
    worker.on('completed', () => completed++);
    await worker.start();
    await until(() => completed === 48 && errors.length === 2);
    await repair();
    await until(() => completed === 50);
    await worker.stop();
    expect(errors).toHaveLength(2);
  });

  /** What is said of the row that refuses, once all others are completed. */
  async function setsAsideAmong(count: number, concurrency: number): Promise<readonly string[]> {
    const worker = createWorker(database.db, {
      queue: grouped,
      handlers: [handle(inFairGroups(1), () => undefined)],
      queues: { f: { concurrency } },
    });
    workers.push(worker);
    const errors: string[] = [];
    let completed = 0;
    worker.on('error', ({ during }) => errors.push(during));
    worker.on('completed', () => completed++);
    await worker.start();
    await until(() => completed === count - 1 && errors.length > 0, { timeoutMs: 15_000 });
    return errors;
  }
  const setAside = (id = 0) => [`claiming job ${id} ('f') from 'f'; it sets the job aside`];

  test.each([0, 4, 8, 11])('costs only itself beside long backlogs of others: group %i', async (bad) => {
    const refs = await grouped.enqueueMany(database.db, inFairGroups(12), numbers(1_440));
    await constrain(bad);
    expect(await setsAsideAmong(1_440, 10)).toEqual(setAside(refs[bad]?.id));
  });

  test('costs only itself where it comes second in a group of more weight', async () => {
    await grouped.limits.set(database.db, { queue: 'f', group: '150' }, { weight: 1_000 });
    const refs = await grouped.enqueueMany(database.db, inFairGroups(200), numbers(800));
    await constrain(350);
    expect(await setsAsideAmong(800, 10)).toEqual(setAside(refs[350]?.id));
  });

  test('costs only itself in a group that becomes ready beside many with backlogs', async () => {
    const refs = await grouped.enqueueMany(database.db, inFairGroups(300), numbers(900));
    await database.client`delete from queue_notes`;
    await database.client`
      insert into queue_groups (queue, group_key, turn, ready_at)
      select 'f', n::text, n, case when n = 299 then now() - interval '1 second' else '-infinity' end
      from generate_series(0, 299) as n`;
    await constrain(299);
    expect(await setsAsideAmong(900, 2)).toEqual(setAside(refs[299]?.id));
  });

  test('costs only itself behind more groups than one claim passes', async () => {
    const many = 15_000;
    await database.client`
      insert into queue_jobs (queue, kind, group_key, payload, max_attempts)
      select 'f', 'other', 'g' || n, to_jsonb(n), 1 from generate_series(1, ${many}::int4) as n`;
    await database.client`
      insert into queue_groups (queue, group_key, turn, ready_at)
      select 'f', case when n > ${many} then '0' else 'g' || n end, n, '-infinity'
      from generate_series(1, ${many}::int4 + 1) as n`;
    const refs = await grouped.enqueueMany(
      database.db,
      inFairGroups(1),
      numbers(4).map(({ payload }) => ({ payload: -payload })),
    );
    await database.client`delete from queue_notes`;
    await constrain(-1);
    expect(await setsAsideAmong(4, 10)).toEqual(setAside(refs[1]?.id));
  });

  test('costs only itself behind jobs of a kind that is at its limit', async () => {
    const ofTenant = (payload: number) => String(payload % 10);
    const ofKind = (kind: string) =>
      defineJob(kind, { queue: 'm', payload: unvalidated<number>(), group: ofTenant });
    const [render, mail] = [ofKind('render'), ofKind('mail')];
    await grouped.enqueueMany(database.db, render, numbers(600));
    const mails = Array.from({ length: 40 }, (_, at) => ({ payload: 1_000 + at }));
    const refs = await grouped.enqueueMany(database.db, mail, mails);
    await constrain(1_003);
    const running = gate();
    const errors: string[] = [];
    const sent: number[] = [];
    const worker = createWorker(database.db, {
      queue: grouped,
      handlers: [
        handle(render, () => running.opened),
        handle(mail, ({ payload }) => void sent.push(payload)),
      ],
      queues: { m: { concurrency: 10 } },
    });
    workers.push(worker);
    worker.on('error', ({ during }) => errors.push(during));
    await worker.start();
    try {
      await until(() => sent.length === 39 && errors.length > 0, { timeoutMs: 10_000 });
      expect(errors).toEqual([`claiming job ${refs[3]?.id} ('mail') from 'm'; it sets the job aside`]);
    } finally {
      running.open();
    }
  });

  test('costs only itself among jobs of no group that a worker is to take into one', async () => {
    const ofNoGroup = defineJob('f', { queue: 'f', payload: unvalidated<number>() });
    await queue.enqueueMany(database.db, ofNoGroup, numbers(1_500));
    await constrain(3, 700);
    const worker = createWorker(database.db, {
      queue: grouped,
      handlers: [handle(ofNoGroup, () => undefined)],
      queues: { f: { concurrency: 100 } },
    });
    workers.push(worker);
    const during = new Set<string>();
    let completed = 0;
    worker.on('error', (told) => during.add(told.during));
    worker.on('completed', () => completed++);
    await worker.start();
    await until(() => completed === 1_498 && during.size > 0, { timeoutMs: 15_000 });
    expect([...during]).toEqual([`looking after the groups of 'f'`]);
    await repair();
    await until(() => completed === 1_500, { timeoutMs: 15_000 });
  });

  test('holds up only its group, where that keeps its order', async () => {
    await grouped.enqueueMany(database.db, inOrder, numbers(50));
    await constrain(7);
    const done: number[] = [];
    const worker = createWorker(database.db, {
      queue: grouped,
      handlers: [handle(inOrder, ({ payload }) => void done.push(payload))],
    });
    worker.on('error', () => {});
    await worker.start();
    // The two of the group 2: 2 has run, 7 is refused, and 12 and the others wait for it.
    await until(() => done.length === 41);
    expect(done.filter((payload) => payload % 5 === 2)).toEqual([2]);
    await repair();
    await until(() => done.length === 50);
    await worker.stop();
    expect(done.filter((payload) => payload % 5 === 2)).toEqual([2, 7, 12, 17, 22, 27, 32, 37, 42, 47]);
  });
});

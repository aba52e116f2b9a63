import { type SQL, sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  drain,
  fixedBackoff,
  handlersFor,
  runNext,
  unvalidated,
  type Worker,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { drainIn, travel } from 'drizzle-queue/testing';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { atFaultPoints, type FaultPoint } from '../../src/core/sql/fault-point.ts';
import type { Holder } from '../../src/core/sql/fence.ts';
import { Retries } from '../../src/core/time/retries.ts';
import { WorkerEmitter } from '../../src/core/worker/base/events.ts';
import { deleteLeftRows } from '../../src/features/workflows/queries/delete-left-rows.ts';
import { findLeftRows } from '../../src/features/workflows/queries/find-left-rows.ts';
import { recordOneStep } from '../../src/features/workflows/queries/record-one-step.ts';
import { recordSteps, stepKey } from '../../src/features/workflows/queries/record-steps.ts';
import { StepRecorder } from '../../src/features/workflows/worker/step-recorder.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { whileOpen } from './fixtures/open-transactions.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const all = { ...tables, ...workflowTables };
const work = defineJob('work', {
  queue: 'q',
  payload: unvalidated<number>(),
  output: unvalidated<unknown>(),
  backoff: fixedBackoff(0),
});
const answer = defineSignal('answer', unvalidated<number>());

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});
afterEach(() => atFaultPoints());

type Run = Parameters<typeof handle<typeof work>>[1];

async function start(run: Run): Promise<Worker> {
  const worker = createWorker(database.db, { queue, handlers: [handle(work, run)], log: false });
  onTestFinished(() => worker.stop());
  await worker.start();
  return worker;
}

const enqueue = async () => (await queue.enqueue(database.db, work, 1)).id;
async function outputOf(id: number): Promise<unknown> {
  const record = await queue.waitFor(database.db, work, id, { timeoutMs: 60_000 });
  return record.state === 'completed' ? record.output : record.state;
}

/** Loses the first answer at a fault point, as a connection that breaks does. */
function losing(point: FaultPoint): { readonly lost: number } {
  const seen = { lost: 0 };
  atFaultPoints(async (at) => {
    if (at !== point || seen.lost > 0) return;
    seen.lost++;
    throw Object.assign(new Error('the connection broke'), { code: 'ECONNRESET' });
  });
  return seen;
}

describe('a job whose row another transaction has locked', () => {
  test.each([
    ['in a statement of its own', 1],
    ['in one statement with others', 2],
  ])('holds up no step of another job: %s', async (_, together) => {
    let isLocked = false;
    const waiting: (() => void)[] = [];
    await start(async ({ step, job: { id } }) => {
      const isFirst = id === locked;
      await until(() => isLocked);
      // What ends in one turn is recorded by one statement.
      if (isFirst || together === 2) {
        await step.run('one', async () => {
          await new Promise<void>((resolve) => {
            waiting.push(resolve);
            if (waiting.length === together) for (const goOn of waiting) goOn();
          });
        });
      } else await until(() => waiting.length === 1);
      for (const name of ['two', 'three']) await step.run(name, () => 1);
      return 'done';
    });
    const [locked = 0, free = 0] = await queue
      .enqueueMany(database.db, work, [{ payload: 1 }, { payload: 2 }])
      .then((enqueued) => enqueued.map(({ id }) => id));
    await until(async () => (await queue.find(database.db, free))?.state === 'running');
    await until(async () => (await queue.find(database.db, locked))?.state === 'running');
    await whileOpen(
      database,
      (tx) => tx.execute(sql`select from queue_jobs where id = ${locked} for update`),
      async () => {
        isLocked = true;
        const record = await queue.waitFor(database.db, work, free, { timeoutMs: 5_000 });
        expect(record).toMatchObject({ state: 'completed', output: 'done' });
        expect(await queue.workflows.steps(database.db, locked)).toEqual([]);
      },
    );
    expect(await outputOf(locked)).toBe('done');
  });
});

describe('the steps of many jobs that end in one turn', () => {
  /** Jobs that a worker holds, and what records a step of each. */
  async function held() {
    const given = await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: 40 }, () => ({ payload: 1 })),
    );
    await database.client`update queue_jobs set worker_id = 1, fence = 1, claimed_at = now()`;
    const seen = { sent: 0 };
    const execute = async (query: SQL) => {
      seen.sent++;
      return await database.db.execute(query);
    };
    const recorder = new StepRecorder({
      db: Object.create(database.db, { execute: { value: execute } }),
      tables: all,
      holder: { queue: 'q', workerId: 1 },
      events: new WorkerEmitter(),
      retries: new Retries(),
    });
    const { signal } = new AbortController();
    const record = (id: number) =>
      recorder.record(
        { id, fence: 1, name: 'one', kind: 'run', tookMs: 0, ended: true },
        { signal, check: () => undefined },
      );
    return { ids: given.map(({ id }) => id), seen, record };
  }

  test('wait for no more than one of those whose rows another transaction has locked', async () => {
    const { ids, seen, record } = await held();
    const locked = `{${ids.slice(0, 20).join()}}`;
    let rest: Promise<unknown> | undefined;
    await database.db.transaction(async (tx) => {
      await tx.execute(sql`select from queue_jobs where id = any(${locked}) for update`);
      const records = ids.map(record);
      await Promise.all(records.slice(20));
      // One that waits for a moment, and one that skips what is locked.
      expect(seen.sent).toBe(2);
      expect(await database.client`select from queue_steps`).toHaveLength(20);
      rest = Promise.all(records);
    });
    await rest;
    expect(await database.client`select from queue_steps`).toHaveLength(40);
  });

  test('are recorded but for the one that the database refuses', async () => {
    const { ids, seen, record } = await held();
    const [refused = 0] = ids.slice(25);
    await database.client.unsafe(
      `alter table queue_steps add constraint wanted check (job_id <> ${refused})`,
    );
    onTestFinished(async () => void (await database.client`alter table queue_steps drop constraint wanted`));
    const ends = await Promise.allSettled(ids.map(record));
    expect(ends.flatMap(({ status }, at) => (status === 'rejected' ? ids[at] : []))).toEqual([refused]);
    expect(await database.client`select from queue_steps`).toHaveLength(39);
    // Halves, not one by one.
    expect(seen.sent).toBeLessThan(20);
  });
});

describe('an answer that is lost', () => {
  test.each([
    ['of a record', 'step: recorded'],
    ['with the record itself', 'step: done'],
  ] as const)('%s: it is repeated, the step runs once, and its attempt goes on', async (_, point) => {
    const seen = losing(point);
    let calls = 0;
    const worker = await start(async ({ step, job }) => {
      const made = await step.run('one', () => ++calls);
      return [made, job.attempt];
    });
    worker.on('error', () => undefined);
    expect(await outputOf(await enqueue())).toEqual([1, 1]);
    expect([seen.lost, calls]).toEqual([1, 1]);
  });

  test('of a signal: the same one is received again, and the worker says why its handler waits', async () => {
    const seen = losing('signal: received');
    const errors: string[] = [];
    const id = await enqueue();
    await queue.workflows.signal(database.db, { id }, answer, 1);
    await queue.workflows.signal(database.db, { id }, answer, 2);
    const worker = await start(async ({ step }) => [
      await step.waitForSignal(answer),
      await step.waitForSignal(answer, { name: 'second' }),
    ]);
    worker.on('error', ({ error, during }) => errors.push(`${during}: ${String(error)}`));
    expect(await outputOf(id)).toEqual([1, 2]);
    expect(seen.lost).toBe(1);
    expect(errors).toEqual([`a step of job ${id} of 'q': Error: the connection broke`]);
  });

  test('of a park: the job waits all the same, and goes on', async () => {
    const seen = losing('settle: parked');
    const worker = await start(async ({ step }) => await step.waitForSignal(answer));
    worker.on('error', () => undefined);
    const id = await enqueue();
    await until(async () => (await queue.find(database.db, id))?.state === 'waiting');
    await queue.workflows.signal(database.db, { id }, answer, 7);
    expect(await outputOf(id)).toBe(7);
    expect(seen.lost).toBe(1);
  });
});

test('the retries of a step are those that the worker ends when the database answers again', async () => {
  const { client } = database;
  await client.unsafe(`
    create sequence refusals;
    create function refuse() returns trigger language plpgsql as $$ begin
      if tg_table_name = 'queue_steps' then perform nextval('refusals'); end if;
      raise exception 'going down' using errcode = '57P01';
    end $$;
  `);
  onTestFinished(async () => {
    await client`drop function refuse cascade`;
    await client`drop sequence refusals`;
  });
  const sleeps = vi.spyOn(Retries.prototype, 'sleep');
  const ends = vi.spyOn(Retries.prototype, 'now');
  onTestFinished(() => void vi.restoreAllMocks());
  const down = gate();
  const during: string[] = [];
  const worker = await start(async ({ step }) => {
    await step.run('one', () => 1);
    return await step.run('two', () => down.opened);
  });
  worker.on('error', (told) => during.push(told.during));
  const id = await enqueue();
  await until(async () => (await queue.workflows.steps(database.db, id)).length === 1);
  await client`create trigger refuse before update on queue_workers for each row execute function refuse()`;
  await until(() => during.includes('the heartbeat'));
  await client`create trigger refuse before insert on queue_steps for each row execute function refuse()`;
  down.open();
  await until(async () => Number((await client`select last_value from refusals`)[0]?.last_value) >= 3);
  await client`drop trigger refuse on queue_workers`;
  await until(() => ends.mock.contexts.length > 0);
  await client`drop trigger refuse on queue_steps`;
  await until(async () => (await queue.workflows.steps(database.db, id)).length === 2);
  expect(new Set([...sleeps.mock.contexts, ...ends.mock.contexts]).size).toBe(1);
});

test('a step whose sleep was ended is tried again with a short delay', async () => {
  const delays: number[] = [];
  const refuse = async () => {
    if (delays.length === 5) return [];
    throw Object.assign(new Error('going down'), { code: '57P01' });
  };
  const recorder = new StepRecorder({
    db: Object.create(database.db, { execute: { value: refuse } }),
    tables: all,
    holder: { queue: 'q', workerId: 1 },
    events: new WorkerEmitter(),
    retries: { sleep: async (ms) => delays.push(ms) === 3 },
  });
  const { signal } = new AbortController();
  const step = { id: 1, fence: 1, name: 'one', kind: 'run', tookMs: 0, ended: true } as const;
  expect(await recorder.record(step, { signal, check: () => undefined })).toBeUndefined();
  expect(delays).toEqual([50, 100, 200, 50, 100]);
});

describe('an attempt that no longer holds its job', () => {
  const step = (id: number, fence: number, output: string) =>
    ({ id, fence, name: 'one', kind: 'run', output, tookMs: 0, ended: true }) as const;

  const ways = [
    {
      way: 'with others',
      record: async (holder: Holder, one: ReturnType<typeof step>) =>
        (await recordSteps(database.db, all, holder, [one], 'briefly')).has(stepKey(one)),
    },
    {
      way: 'alone',
      record: async (holder: Holder, one: ReturnType<typeof step>) =>
        (await recordOneStep(database.db, all, holder, one, 'briefly')) !== undefined,
    },
    {
      way: 'alone, in a transaction',
      record: async (holder: Holder, one: ReturnType<typeof step>) =>
        await database.db.transaction(
          async (tx) => (await recordOneStep(tx, all, holder, one, 'wait')) !== undefined,
        ),
    },
  ];

  test.each(ways)(
    'records nothing, and the one that holds it does; a step that has ended never changes: $way',
    async ({ record: recordBy }) => {
      const id = await enqueue();
      const claim = async (worker: number) => {
        const [row] = await database.client<[{ fence: string }]>`
        update queue_jobs set worker_id = ${worker}, fence = fence + 1, claimed_at = now() returning fence`;
        return Number(row.fence);
      };
      const stale = await claim(1);
      const held = await claim(2);
      const record = async (workerId: number, fence: number, output: string) => {
        return await recordBy({ queue: 'q', workerId }, step(id, fence, output));
      };
      expect(await record(1, stale, '1')).toBe(false);
      expect(await queue.workflows.steps(database.db, id)).toEqual([]);
      expect(await record(2, held, '2')).toBe(true);
      expect(await record(1, stale, '3')).toBe(false);
      // The same attempt again, as after a lost answer.
      expect(await record(2, held, '2')).toBe(true);
      // And a later one, which would have read it.
      expect(await record(2, await claim(2), '4')).toBe(false);
      expect(await queue.workflows.steps(database.db, id)).toMatchObject([{ name: 'one', output: 2 }]);
    },
  );

  test.each(ways)(
    'records no wait of a step that it has ended, however late: $way',
    async ({ record: recordBy }) => {
      const id = await enqueue();
      const [row] = await database.client<[{ fence: string }]>`
      update queue_jobs set worker_id = 1, fence = fence + 1, claimed_at = now() returning fence`;
      const one = step(id, Number(row.fence), '1');
      const holder = { queue: 'q', workerId: 1 };
      expect(await recordBy(holder, one)).toBe(true);
      const { output: _, ...open } = { ...one, ended: false };
      expect(await recordBy(holder, open as unknown as typeof one)).toBe(false);
      expect(await queue.workflows.steps(database.db, id)).toMatchObject([{ name: 'one', output: 1 }]);
    },
  );

  test('is told so also where the one that holds it records the same step beside it', async () => {
    const id = await enqueue();
    const [row] = await database.client<[{ fence: string }]>`
      update queue_jobs set worker_id = 1, fence = fence + 1, claimed_at = now() returning fence`;
    const fence = Number(row.fence);
    const both = [step(id, fence - 1, '1'), step(id, fence, '2')] as const;
    const recorded = await recordSteps(database.db, all, { queue: 'q', workerId: 1 }, both, 'briefly');
    expect(both.map((one) => recorded.has(stepKey(one)))).toEqual([false, true]);
  });

  test('gets a LeaseLostError, and its transaction is rolled back', async () => {
    await database.client`create table written (job bigint)`;
    const errors: string[] = [];
    let takeOver = true;
    await start(async ({ step, job }) => {
      if (!takeOver) return 'second';
      takeOver = false;
      await step
        .transaction('write', async (tx) => {
          await tx.execute(`insert into written values (${job.id})`);
          // Another worker takes the job over.
          await database.client`update queue_jobs set worker_id = null, fence = fence + 1 where id = ${job.id}`;
        })
        .catch((error: Error) => void errors.push(error.name));
      return 'first';
    });
    expect(await outputOf(await enqueue())).toBe('second');
    expect(errors).toEqual(['LeaseLostError']);
    expect(await database.client`select from written`).toHaveLength(0);
    await database.client`drop table written`;
  });
});

describe('runNext', () => {
  test('records steps in its transaction, and leaves a job waiting', async () => {
    const handlers = [
      handle(work, async ({ step }) => {
        const one = await step.run('one', () => 1);
        const two = await step.transaction('two', async (tx) => {
          await tx.execute('select 1');
          return 2;
        });
        return [one, two, await step.waitForSignal(answer)];
      }),
    ];
    const id = await enqueue();
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'waiting' });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'waiting', attempt: 0 });
    expect(await runNext(database.db, { queue, handlers })).toBeUndefined();
    await queue.workflows.signal(database.db, { id }, answer, 3);
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'completed' });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed', output: [1, 2, 3] });
  });

  test('undoes the steps of an attempt that fails, with all else', async () => {
    let calls = 0;
    const handlers = [
      handle(work, async ({ step, job }) => {
        await step.run('one', () => ++calls);
        if (job.errors.length === 0) throw new Error('no');
      }),
    ];
    const id = await enqueue();
    await runNext(database.db, { queue, handlers });
    expect(await queue.workflows.steps(database.db, id)).toEqual([]);
    await runNext(database.db, { queue, handlers });
    expect(calls).toBe(2);
  });
});

describe('what is left of jobs that are gone', () => {
  test('is found slice by slice, and deleted; that of live and finished jobs stays', async () => {
    const live = await enqueue();
    const done = await enqueue();
    await database.client`
      insert into queue_steps (job_id, queue, name, kind, fence, started_at)
      select id, 'q', n::text, 'run', 1, now()
      from unnest(${[live, done, done + 1_000, done + 1_001]}::int8[]) as id, generate_series(1, 3) as n`;
    await database.client`
      insert into queue_mailboxes (job_id, queue, name) values (${live}, 'q', 'a'), (${done + 1_000}, 'q', 'a')`;
    await runNext(database.db, { queue, handlers: [handle(work, () => 1)], id: done });
    let pruned = 0;
    for (const table of ['queueSteps', 'queueMailboxes'] as const) {
      let after: Awaited<ReturnType<typeof findLeftRows>>['last'];
      do {
        const { gone, last } = await findLeftRows(database.db, all, table, after, 2);
        for (const [name, ids] of gone) pruned += await deleteLeftRows(database.db, all, table, name, ids);
        after = last;
      } while (after !== undefined);
    }
    expect(pruned).toBe(7);
    const left = await database.client`select distinct job_id from queue_steps order by 1`;
    expect(left.map(({ job_id }) => Number(job_id))).toEqual([live, done]);
    expect(await database.client`select from queue_mailboxes`).toHaveLength(1);
  });
});

describe('the testing kit', () => {
  const handlers = [
    handle(work, async ({ step }) => {
      const one = await step.run('one', () => 1);
      await step.sleep('a day', 86_400_000);
      return [one, await step.waitForSignal(answer)];
    }),
  ];

  test('drainIn walks a workflow in the transaction of a test, and travel makes its waits pass', async () => {
    const rollBack = new Error('roll back');
    const walked = database.db.transaction(async (tx) => {
      const { id } = await queue.enqueue(tx, work, 1);
      expect(await drainIn(tx, { queue, handlers })).toMatchObject({ completed: 0, snoozed: 1 });
      await travel(tx, queue, { days: 1 });
      expect(await drainIn(tx, { queue, handlers })).toMatchObject({ completed: 0, snoozed: 1 });
      await queue.workflows.signal(tx, { id }, answer, 7);
      expect(await drainIn(tx, { queue, handlers })).toMatchObject({ completed: 1 });
      expect(await queue.find(tx, id)).toMatchObject({ output: [1, 7] });
      throw rollBack;
    });
    await expect(walked).rejects.toBe(rollBack);
    expect(await database.client`select from queue_steps`).toHaveLength(0);
  });

  test('travel makes flows and mailboxes older, too', async () => {
    await queue.workflows.enqueueFlow(database.db, (flow) => {
      flow.add(work, 2, { after: [flow.add(work, 1)] });
    });
    const { id } = await queue.enqueue(database.db, work, 3);
    await queue.workflows.signal(database.db, { id }, answer, 7);
    const times = async () => {
      const { flows } = await queue.workflows.flows(database.db);
      const boxes = await queue.workflows.mailboxes(database.db, id);
      return [...flows.map(({ createdAt }) => createdAt), ...boxes.map(({ updatedAt }) => updatedAt)].map(
        Number,
      );
    };
    const before = await times();
    await travel(database.db, queue, { days: 30 });
    const after = await times();
    expect(before.map((time, at) => (time - Number(after[at])) / 86_400_000)).toEqual([30, 30]);
  });

  test('a year of sleeping passes by travel: each month is paid once, and the last sleep takes all of it', async () => {
    const paid: string[] = [];
    const subscription = handle(work, async ({ step }) => {
      for (let month = 1; month <= 12; month++) {
        await step.run(`pay-${month}`, () => void paid.push(`${month}`));
        await step.sleep(`month-${month}`, 30 * 86_400_000);
      }
      await step.sleep('a year', 365 * 86_400_000);
      await step.sleepUntil('until then', new Date(Date.now() + 3_600_000));
      return paid.length;
    });
    const handlers = [subscription];
    const { id } = await queue.enqueue(database.db, work, 1);
    const run = async () => await drain(database.db, { queue, handlers, deadlineMs: 20_000, log: false });
    await run();
    for (let month = 1; month <= 12; month++) {
      expect(paid).toHaveLength(month);
      await travel(database.db, queue, { days: 29 });
      // It is not over yet.
      expect(await run()).toMatchObject({ completed: 0, snoozed: 0 });
      await travel(database.db, queue, { days: 1 });
      expect(await run()).toMatchObject({ completed: 0, snoozed: 1 });
    }
    await travel(database.db, queue, { days: 364 });
    expect(await run()).toMatchObject({ completed: 0, snoozed: 0 });
    await travel(database.db, queue, { days: 1 });
    await run();
    await travel(database.db, queue, { hours: 2 });
    expect(await run()).toMatchObject({ completed: 1 });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed', output: 12, attempt: 1 });
    expect(paid).toEqual(Array.from({ length: 12 }, (_, at) => String(at + 1)));
    // As the steps say, it took two years.
    const steps = await queue.workflows.steps(database.db, id);
    const [first, last] = [steps[0]?.startedAt ?? new Date(), steps.at(-1)?.endedAt ?? new Date()];
    expect(Math.round((last.getTime() - first.getTime()) / 86_400_000)).toBe(12 * 30 + 365);
  });
});

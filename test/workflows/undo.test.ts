import { setTimeout as delay } from 'node:timers/promises';
import { type SQL, sql } from 'drizzle-orm';
import { PgDialect, pgTable, text } from 'drizzle-orm/pg-core';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  fixedBackoff,
  handlersFor,
  isFinal,
  NestedStepError,
  NonRetryableError,
  unvalidated,
  type Worker,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { atFaultPoints, type FaultPoint } from '../../src/core/sql/fault-point.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { runningMsUntil } from '../support/running-time.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { noteUnhandled } from '../support/unhandled.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const work = defineJob('work', {
  queue: 'q',
  payload: unvalidated<number>(),
  backoff: fixedBackoff(0),
  maxAttempts: 3,
});

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});
afterEach(() => atFaultPoints());

/** A deadline that comes while an attempt runs, and not before it has recorded a step, also on a busy machine. */
const SOON_MS = 3_000;

type Run = Parameters<typeof handle<typeof work>>[1];
type Step = Parameters<Run>[0]['step'];

async function start(run: Run, job = work): Promise<Worker> {
  const handlers = [handle(job, run)];
  const worker = createWorker(database.db, { queue, handlers, queues: { q: {} }, log: false });
  onTestFinished(() => worker.stop());
  // What the database refuses in these tests is no news.
  worker.on('error', () => undefined);
  await worker.start();
  return worker;
}

const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;
const stepsOf = async (id: number) => (await queue.workflows.steps(database.db, id)).map(({ name }) => name);

describe('the undo of a job that is to end', () => {
  test.each([
    ['is locked for a moment', '55P03'],
    ['does not answer', '57P01'],
  ])('goes on where a row or the server %s', async (_, code) => {
    const undone: string[] = [];
    await database.client.unsafe(`
      create sequence refusals;
      create function refuse() returns trigger language plpgsql as $$ begin
        if nextval('refusals') <= 2 then raise exception 'not now' using errcode = '${code}'; end if;
        return new;
      end $$;
      create trigger refuse before insert on queue_steps
      for each row when (new.name = 'undo:two') execute function refuse();
    `);
    onTestFinished(async () => {
      await database.client`drop function refuse cascade`;
      await database.client`drop sequence refusals`;
    });
    let isRunning = false;
    await start(async ({ step, signal }) => {
      try {
        for (const name of ['one', 'two'])
          await step.run(name, { undo: () => void undone.push(name) }, () => 1);
        isRunning = true;
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      } catch (error) {
        await step.undoAll(error);
        throw error;
      }
    });
    const { id } = await queue.enqueue(database.db, work, 1);
    await until(() => isRunning);
    await queue.cancel(database.db, id, 'no longer');
    await until(async () => (await stateOf(id)) === 'cancelled');
    expect(undone).toEqual(['two', 'one']);
    expect(await stepsOf(id)).toEqual(expect.arrayContaining(['undo:one', 'undo:two']));
  });

  test('is followed by steps that are tried again, too', async () => {
    const tell = defineJob('tell', { queue: 'other' });
    await database.client.unsafe(`
      create sequence refusals;
      create function refuse() returns trigger language plpgsql as $$ begin
        if nextval('refusals') <= 2 then raise exception 'not now' using errcode = '57P01'; end if;
        return new;
      end $$;
      create trigger refuse before insert on queue_steps
      for each row when (new.name = 'tell') execute function refuse();
    `);
    onTestFinished(async () => {
      await database.client`drop function refuse cascade`;
      await database.client`drop sequence refusals`;
    });
    let isRunning = false;
    const failures: unknown[] = [];
    await start(async ({ step, signal }) => {
      try {
        await step.run('one', { undo: () => undefined }, () => 1);
        isRunning = true;
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      } catch (error) {
        await step.undoAll(error);
        await step.enqueue('tell', tell).catch((failure) => failures.push(failure));
        throw error;
      }
    });
    const { id } = await queue.enqueue(database.db, work, 1);
    await until(() => isRunning);
    await queue.cancel(database.db, id, 'no longer');
    await until(async () => (await stateOf(id)) === 'cancelled');
    expect(failures).toEqual([]);
    expect(await stepsOf(id)).toContain('tell');
  });

  test('after its deadline goes on where the server does not say at once what is recorded', async () => {
    const dated = defineJob('dated', { queue: 'q', deadlineMs: 3_600_000, backoff: fixedBackoff(60_000) });
    const undone: string[] = [];
    const dialect = new PgDialect();
    let answers = 0;
    const execute = async (query: SQL) => {
      const isQuestion = /^\s*select s\.job_id, s\.name/.test(dialect.sqlToQuery(query).sql);
      if (isQuestion && answers++ === 0) throw Object.assign(new Error('not now'), { code: '57P01' });
      return await database.db.execute(query);
    };
    const handlers = [
      handle(dated, async ({ step }) => {
        try {
          await step.run('one', { undo: () => void undone.push('one') }, () => 1);
          await step.run('two', () => Promise.reject(new Error('again')));
        } catch (error) {
          if (isFinal(error)) await step.undoAll(error);
          throw error;
        }
      }),
    ];
    const db: typeof database.db = Object.create(database.db, { execute: { value: execute } });
    const worker = createWorker(db, { queue, handlers, queues: { q: {} }, log: false });
    onTestFinished(() => worker.stop());
    worker.on('error', () => undefined);
    await worker.start();
    const { id } = await queue.enqueue(database.db, dated);
    await until(async () => (await stateOf(id)) === 'scheduled');
    await database.client`
      update queue_jobs set run_at = run_at - interval '1 hour', created_at = created_at - interval '1 hour'`;
    await until(async () => (await stateOf(id)) === 'discarded');
    expect(undone).toEqual(['one']);
    expect(answers).toBe(2);
  });
});

describe('a job that is told to end just before it waits', () => {
  const approval = defineSignal('approval');

  test.each([
    ['cancelled', work],
    ['discarded', defineJob('work', { queue: 'q', payload: unvalidated<number>(), deadlineMs: SOON_MS })],
  ])('is undone before it is %s', async (state, job) => {
    const undone: string[] = [];
    let isAsking = false;
    let isTold = () => false;
    const dialect = new PgDialect();
    const execute = async (query: SQL) => {
      const answer = await database.db.execute(query);
      if (!/"queue_mailboxes" as m \(/.test(dialect.sqlToQuery(query).sql)) return answer;
      isAsking = true;
      await until(isTold);
      return answer;
    };
    const db: typeof database.db = Object.create(database.db, { execute: { value: execute } });
    const handlers = [
      handle(job, async ({ step, signal }) => {
        isTold = () => signal.aborted;
        try {
          await step.run('one', { undo: () => void undone.push('one') }, () => 1);
          await Promise.all([step.waitForSignal(approval), step.sleep('a day', 86_400_000)]);
        } catch (error) {
          if (isFinal(error)) await step.undoAll(error);
          throw error;
        }
      }),
    ];
    const worker = createWorker(db, { queue, handlers, queues: { q: {} }, log: false });
    onTestFinished(() => worker.stop());
    await worker.start();
    const { id } = await queue.enqueue(database.db, job, 1);
    await until(() => isAsking);
    if (state === 'cancelled') await queue.cancel(database.db, id);
    await until(async () => (await stateOf(id)) === state);
    expect(undone).toEqual(['one']);
  });

  test('tells all of many waits within some seconds', async () => {
    const ends: number[] = [];
    const told = gate();
    await start(async ({ step, signal }) => {
      const names = Array.from({ length: 8 }, (_, at) => `nap ${at}`);
      const run = step.run('two', async () => {
        await until(() => signal.aborted);
        told.open();
      });
      const all = Promise.allSettled([...names.map((name) => step.sleep(name, 86_400_000)), run]);
      await told.opened;
      ends.push(await runningMsUntil(all));
    });
    const { id } = await queue.enqueue(database.db, work, 1);
    await until(async () => (await stepsOf(id)).length === 8);
    await queue.cancel(database.db, id);
    await until(() => ends.length > 0);
    // One after the other, a second between them, would take 7 seconds.
    expect(ends[0]).toBeLessThan(5_000);
  });

  test('need not await each of its waits: the process goes on', async () => {
    const unhandled = noteUnhandled();
    const undone: string[] = [];
    await start(async ({ step, signal, job }) => {
      try {
        await step.run('one', { undo: () => void undone.push('one') }, () => 1);
        const ran = step.run('two', () => until(() => signal.aborted));
        const asked = step.waitForSignal(approval);
        await until(async () => (await stepsOf(job.id)).includes('approval'));
        const slept = step.sleep('a day', 86_400_000);
        await asked;
        await slept;
        await ran;
      } catch (error) {
        if (isFinal(error)) await step.undoAll(error);
        throw error;
      }
    });
    const { id } = await queue.enqueue(database.db, work, 1);
    await until(async () => (await stepsOf(id)).includes('a day'));
    await queue.cancel(database.db, id);
    await until(async () => (await stateOf(id)) === 'cancelled');
    expect(undone).toEqual(['one']);
    expect(unhandled).toEqual([]);
  });

  test('is undone where its deadline comes while it ends what is around its handler', async () => {
    const around = {
      run: async (_: unknown, next: () => Promise<unknown>) => {
        const beganMs = performance.now();
        await next();
        await until(() => performance.now() > beganMs + SOON_MS);
      },
    };
    const surrounding = createQueue({ tables, workflows: workflowsIn(workflowTables), around });
    const dated = defineJob('dated', { queue: 'q', deadlineMs: SOON_MS });
    const undone: string[] = [];
    const handlers = [
      handlersFor<typeof database.db, typeof surrounding>().handle(dated, async ({ step }) => {
        try {
          await step.run('one', { undo: () => void undone.push('one') }, () => 1);
          await step.waitForSignal(approval);
        } catch (error) {
          if (isFinal(error)) await step.undoAll(error);
          throw error;
        }
      }),
    ];
    const worker = createWorker(database.db, { queue: surrounding, handlers, queues: { q: {} }, log: false });
    onTestFinished(() => worker.stop());
    await worker.start();
    const { id } = await queue.enqueue(database.db, dated);
    await until(async () => (await stateOf(id)) === 'discarded');
    expect(undone).toEqual(['one']);
  });
});

describe('a step after a sleep that has passed', () => {
  test('is undone at the deadline of its job', async () => {
    const approval = defineSignal('approval');
    const dated = defineJob('dated', { queue: 'q', deadlineMs: 3_600_000 });
    const undone: string[] = [];
    const handlers = [
      handle(dated, async ({ step }) => {
        try {
          await step.run('one', { undo: () => void undone.push('one') }, () => 1);
          await step.sleep('a moment', 1);
          await step.run('two', { undo: () => void undone.push('two') }, () => 1);
          await step.waitForSignal(approval);
        } catch (error) {
          if (isFinal(error)) await step.undoAll(error);
          throw error;
        }
      }),
    ];
    const worker = createWorker(database.db, { queue, handlers, queues: { q: {} }, log: false });
    onTestFinished(() => worker.stop());
    await worker.start();
    const { id } = await queue.enqueue(database.db, dated);
    await until(async () => (await stepsOf(id)).includes('approval'));
    await until(async () => (await stateOf(id)) === 'scheduled');
    await database.client`
      update queue_jobs set run_at = run_at - interval '1 hour', created_at = created_at - interval '1 hour'`;
    await until(async () => (await stateOf(id)) === 'discarded');
    expect(undone).toEqual(['two', 'one']);
  });

  test('is undone by the attempt after one whose undo has failed', async () => {
    const undone: string[] = [];
    let isBusy = true;
    await start(async ({ step }) => {
      try {
        await step.run('one', { undo: () => void undone.push('one') }, () => 1);
        await step.sleep('a moment', 1);
        const undo = () => {
          if (!isBusy) return undone.push('two');
          isBusy = false;
          throw new Error('the line is busy');
        };
        await step.run('two', { undo }, () => 1);
        throw new NonRetryableError('out of stock');
      } catch (error) {
        if (isFinal(error)) await step.undoAll(error);
        throw error;
      }
    });
    const { id } = await queue.enqueue(database.db, work, 1);
    await until(async () => (await stateOf(id)) === 'discarded');
    expect(undone).toEqual(['two', 'one']);
  });
});

test('a job with as many steps as it may have is undone, each step once', async () => {
  const undone: string[] = [];
  await start(async ({ step, job }) => {
    try {
      await step.run('one', { undo: () => void undone.push('one') }, () => 1);
      await step.run('two', { undo: () => void undone.push('two') }, () => 1);
      if (job.errors.length === 0) {
        await database.db.execute(sql`
          insert into queue_steps (job_id, queue, name, kind, attempts, fence, started_at, ended_at)
          select ${job.id}, 'q', 'step ' || n, 'run', 1, 0, now(), now() from generate_series(1, 9998) as n`);
        throw new Error('in the middle');
      }
      await step.run('one too many', () => 1);
    } catch (error) {
      if (job.errors.length === 0) throw error;
      await step.undoAll(error);
      throw new NonRetryableError('too many steps');
    }
  });
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await stateOf(id)) === 'discarded');
  expect((await queue.find(database.db, id))?.errors.map(({ message }) => message)).toEqual([
    'in the middle',
    'too many steps',
  ]);
  expect(undone).toEqual(['two', 'one']);
});

test('a step that is recorded while others are undone is undone, too', async () => {
  const undone: string[] = [];
  let release = () => {};
  const slow = new Promise<void>((resolve) => {
    release = resolve;
  });
  await start(async ({ step, job }) => {
    try {
      await Promise.all([
        step.run('slow', { undo: () => void undone.push('slow') }, () => slow),
        (async () => {
          const undo = async () => {
            release();
            await until(async () => (await stepsOf(job.id)).includes('slow'));
            undone.push('quick');
          };
          await step.run('quick', { undo }, () => 1);
          throw new NonRetryableError('out of stock');
        })(),
      ]);
    } catch (error) {
      await step.undoAll(error);
      throw error;
    }
  });
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await stateOf(id)) === 'discarded');
  expect(undone).toEqual(['quick', 'slow']);
});

describe('a step under way when undoAll is called beside it', () => {
  /** Goes on once what was recorded before is undone. */
  async function startBooking(
    undone: string[],
    bookSlowly: (step: Step, slow: Promise<void>) => Promise<unknown>,
    together: (bookings: Promise<unknown>[]) => Promise<unknown> = (bookings) => Promise.all(bookings),
  ): Promise<number> {
    await start(async ({ step, job }) => {
      let release = () => {};
      const slow = new Promise<void>((resolve) => {
        release = resolve;
      });
      const undo = () =>
        void until(async () => (await stepsOf(job.id)).includes('undo:first')).then(() => release());
      await step.run('first', { undo }, () => 1);
      const bookHotel = async () => {
        try {
          await step.run('hotel', () => Promise.reject(new NonRetryableError('no room')));
        } catch (error) {
          await step.undoAll(error);
          undone.push('all');
          throw error;
        }
      };
      await together([bookSlowly(step, slow), bookHotel()]);
    });
    const { id } = await queue.enqueue(database.db, work, 1);
    await until(async () => ['completed', 'discarded'].includes(String(await stateOf(id))));
    return id;
  }

  test('is undone once it is recorded', async () => {
    const undone: string[] = [];
    const id = await startBooking(undone, (step, slow) =>
      step.run('flight', { undo: () => void undone.push('flight') }, () => slow),
    );
    expect(undone).toEqual(['flight', 'all']);
    expect(await stepsOf(id)).toEqual(expect.arrayContaining(['flight', 'undo:flight']));
  });

  test('is followed by no other step', async () => {
    const undone: string[] = [];
    const id = await startBooking(undone, async (step, slow) => {
      await step.run('flight', () => slow);
      await step.run('seat', () => 1).finally(() => undone.push('seat'));
    });
    expect(await stepsOf(id)).not.toContain('seat');
    // Nothing may await what the end of the handler has left behind.
    expect(undone).toEqual(['all']);
  });

  test('is followed by no other step, and what waits for that is told', async () => {
    const undone: string[] = [];
    const told: unknown[] = [];
    const id = await startBooking(
      undone,
      async (step, slow) => {
        await step.run('flight', () => slow);
        await step.run('seat', () => 1);
      },
      async (bookings) => {
        for (const end of await Promise.allSettled(bookings)) told.push('reason' in end ? end.reason : end);
      },
    );
    expect(await stepsOf(id)).not.toContain('seat');
    expect(told[0]).toBeInstanceOf(NonRetryableError);
    expect(told[0]).toMatchObject({
      message: "The step 'seat' of 'work' does not begin, since the job was being undone: no room",
    });
    expect(undone).toEqual(['all']);
  });
});

test('a step cannot wait for undoAll, which waits for it', async () => {
  let refused: unknown;
  await start(async ({ step }) => {
    await step.run('one', () => 1);
    await step
      .run('two', () => step.undoAll(new Error('no')))
      .catch((error: unknown) => {
        refused = error;
      });
  });
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await stateOf(id)) === 'completed');
  expect(refused).toBeInstanceOf(NestedStepError);
});

test.each<[string, FaultPoint, number, { attempt: number }]>([
  ['the answer to its mark is lost', 'step: recorded', 3, { attempt: 1 }],
  ['it fails once that is marked', 'undo: marked', 1, { attempt: 2 }],
])('a job is undone once where %s', async (_, point, nth, ended) => {
  const undone: string[] = [];
  let passed = 0;
  atFaultPoints(async (at) => {
    if (at !== point || ++passed !== nth) return;
    throw Object.assign(new Error('the connection broke'), { code: 'ECONNRESET' });
  });
  await start(async ({ step }) => {
    try {
      for (const name of ['one', 'two'])
        await step.run(name, { undo: () => void undone.push(name) }, () => 1);
      throw new NonRetryableError('out of stock');
    } catch (error) {
      if (isFinal(error)) await step.undoAll(error);
      throw error;
    }
  });
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await stateOf(id)) === 'discarded');
  expect(passed).toBeGreaterThanOrEqual(nth);
  expect(undone).toEqual(['two', 'one']);
  expect(await stepsOf(id)).toEqual(['one', 'two', 'undo', 'undo:two', 'undo:one']);
  const errors = [{ message: 'out of stock' }];
  if (ended.attempt > 1) errors.unshift({ message: 'the connection broke' });
  expect(await queue.find(database.db, id)).toMatchObject({ ...ended, errors });
});

test('undoAll goes on where a call before it has failed', async () => {
  const undone: string[] = [];
  let isBusy = true;
  await start(async ({ step }) => {
    try {
      await step.run('one', { undo: () => void undone.push('one') }, () => 1);
      const undo = () => {
        undone.push('two');
        if (!isBusy) return;
        isBusy = false;
        throw new Error('the line is busy');
      };
      await step.run('two', { undo }, () => 1);
      await step.run('three', { undo: () => void undone.push('three') }, () => 1);
      throw new NonRetryableError('out of stock');
    } catch (error) {
      await step.undoAll(error).catch(() => step.undoAll(error));
      throw error;
    }
  });
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await stateOf(id)) === 'discarded');
  expect(undone).toEqual(['three', 'two', 'two', 'one']);
});

test.each([
  ['once it was carried out', false],
  ['before it is carried out', true],
])(
  'an undo whose COMMIT gets no answer takes effect once, also if undoAll is called again: %s',
  async (_, isLate) => {
    const undos = pgTable('undos', { name: text('name') });
    await database.client`create table undos (name text)`;
    onTestFinished(async () => void (await database.client`drop table undos`));
    let isUndoing = false;
    const committed: Promise<unknown>[] = [];
    const transaction: typeof database.db.transaction = async (run, config) => {
      const isLost = isUndoing && committed.length === 0;
      if (!isLost) return await database.db.transaction(run, config);
      let giveUp = () => {};
      const answered = new Promise<void>((resolve) => {
        giveUp = resolve;
      });
      const carriedOut = database.db.transaction(async (tx) => {
        const output = await run(tx);
        if (isLate) {
          giveUp();
          await until(() => isAgain);
        }
        return output;
      }, config);
      committed.push(carriedOut);
      await Promise.race([answered, carriedOut]);
      throw Object.assign(new Error('the connection broke'), { code: 'ECONNRESET' });
    };
    let isAgain = false;
    const db: typeof database.db = Object.create(database.db, { transaction: { value: transaction } });
    const handlers = [
      handle(work, async ({ step }) => {
        const undo = async (tx: { insert: typeof database.db.insert }) => {
          isUndoing = true;
          await tx.insert(undos).values({ name: 'one' });
        };
        await step.transaction('one', { undo }, async () => 1);
        isUndoing = true;
        const error = new NonRetryableError('out of stock');
        while (
          !(await step.undoAll(error).then(
            () => true,
            () => false,
          ))
        )
          setTimeout(() => (isAgain = true), 50);
        throw error;
      }),
    ];
    const worker = createWorker(db, { queue, handlers, queues: { q: {} }, log: false });
    onTestFinished(() => worker.stop());
    worker.on('error', () => undefined);
    await worker.start();
    const { id } = await queue.enqueue(database.db, work, 1);
    await until(async () => (await stateOf(id)) === 'discarded');
    await Promise.all(committed);
    expect(await database.db.select().from(undos)).toEqual([{ name: 'one' }]);
  },
);

test('an undo whose COMMIT was late is no loss of its job: the second undoAll goes on with those before it', async () => {
  const undone: string[] = [];
  const second = gate();
  let isUndoing = false;
  let late: Promise<unknown> | undefined;
  const transaction: typeof database.db.transaction = async (run, config) => {
    if (!isUndoing || late !== undefined) return await database.db.transaction(run, config);
    const ran = gate();
    late = database.db.transaction(async (tx) => {
      await run(tx);
      ran.open();
      await second.opened;
    }, config);
    await ran.opened;
    throw Object.assign(new Error('the connection broke'), { code: 'ECONNRESET' });
  };
  const isBlocked = async () => {
    const waiting = await database.client`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    return waiting.length > 0;
  };
  const db: typeof database.db = Object.create(database.db, { transaction: { value: transaction } });
  const failures: unknown[] = [];
  const handlers = [
    handle(work, async ({ step }) => {
      await step.run('one', { undo: () => void undone.push('one') }, () => 1);
      const undo = async () => {
        // The second one waits for what the first has recorded.
        if (undone.push('two') === 2) void until(isBlocked).then(second.open);
      };
      await step.transaction('two', { undo }, async () => 1);
      const error = new NonRetryableError('out of stock');
      isUndoing = true;
      await step.undoAll(error).catch(async (failure) => {
        failures.push(failure);
        await step.undoAll(error);
      });
      throw error;
    }),
  ];
  const worker = createWorker(db, { queue, handlers, queues: { q: {} }, log: false });
  onTestFinished(() => worker.stop());
  worker.on('error', () => undefined);
  await worker.start();
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await stateOf(id)) === 'discarded');
  await late;
  expect(failures).toMatchObject([{ message: 'the connection broke' }]);
  expect((await queue.find(database.db, id))?.errors).toMatchObject([{ message: 'out of stock' }]);
  expect(undone).toEqual(['two', 'two', 'one']);
});

test('an undo that is tried again comes before those of the steps before it, beside a step that fails', async () => {
  const undone: string[] = [];
  let isBusy = true;
  await start(async ({ step }) => {
    let release = () => {};
    const isBooked = new Promise<void>((resolve) => {
      release = resolve;
    });
    const book = async () => {
      for (let n = 0; n < 10; n++) await step.run(`ask ${n}`, () => 1);
      for (const name of ['one', 'two', 'three']) {
        const undo = () => {
          if (name !== 'two' || !isBusy) return undone.push(name);
          isBusy = false;
          throw new Error('the line is busy');
        };
        await step.run(name, { undo }, () => 1);
      }
      release();
    };
    try {
      await Promise.all([
        book(),
        step.run('pay', async () => {
          await isBooked;
          throw new NonRetryableError('no money');
        }),
      ]);
    } catch (error) {
      if (isFinal(error)) await step.undoAll(error);
      throw error;
    }
  });
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await stateOf(id)) === 'discarded');
  expect(undone).toEqual(['three', 'two', 'one']);
});

test('calls of undoAll beside each other return once all is undone', async () => {
  const undone: string[] = [];
  let calls = 0;
  let hasReturned = false;
  await start(async ({ step, job }) => {
    const undo = async () => {
      await until(() => calls === 2);
      // The other call must not return before this.
      await until(async () => (await stepsOf(job.id)).includes('undo:two'));
      undone.push(`one, ${hasReturned ? 'after' : 'before'} the end`);
    };
    await step.run('one', { undo }, () => 1);
    await step.run('two', { undo: () => void undone.push('two') }, () => 1);
    await Promise.all(
      ['a', 'b'].map(async (name) => {
        try {
          await step.run(name, () => Promise.reject(new NonRetryableError('out of stock')));
        } catch (error) {
          calls++;
          await step.undoAll(error);
          hasReturned = true;
          throw error;
        }
      }),
    );
  });
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await stateOf(id)) === 'discarded');
  expect(undone).toEqual(['two', 'one, before the end']);
  expect(await stepsOf(id)).toContain('undo:one');
});

describe('an undo that fails where the job is not run again', () => {
  const late = defineJob('work', {
    queue: 'q',
    payload: unvalidated<number>(),
    deadlineMs: SOON_MS,
  });
  const told = (worker: Worker) => {
    const errors: unknown[] = [];
    worker.on('error', (error) => errors.push(error));
    return errors;
  };
  const run: Run = async ({ step, signal }) => {
    try {
      await step.run('charge', { undo: () => Promise.reject(new Error('refund refused')) }, () => 1);
      await step.transaction('reserve', { undo: () => Promise.resolve() }, async () => 1);
      await step.run(
        'ship',
        () =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason));
          }),
      );
    } catch (error) {
      if (isFinal(error)) await step.undoAll(error);
      throw error;
    }
  };

  test.each([
    ['cancelled', work],
    ['discarded', late],
  ])('is an error event: %s', async (state, job) => {
    const worker = await start(run, job);
    const errors = told(worker);
    const { id } = await queue.enqueue(database.db, job, 1);
    if (state === 'cancelled') {
      await until(async () => (await stepsOf(id)).includes('reserve'));
      await queue.cancel(database.db, id);
    }
    await until(async () => (await stateOf(id)) === state);
    expect(errors).toEqual([
      {
        error: expect.objectContaining({ message: 'refund refused' }),
        during: `the undo of step 'charge' of job ${id} of 'q'`,
      },
    ]);
  });

  test('is none where the job is tried again, and its errors have it', async () => {
    const worker = await start(async ({ step }) => {
      await step.run('charge', { undo: () => Promise.reject(new Error('refund refused')) }, () => 1);
      await step.undoAll(new NonRetryableError('no'));
    });
    const errors = told(worker);
    const { id } = await queue.enqueue(database.db, work, 1);
    await until(async () => (await stateOf(id)) === 'discarded');
    expect((await queue.find(database.db, id))?.errors.at(-1)).toMatchObject({ message: 'refund refused' });
    expect(errors).toEqual([]);
  });
});

test('an undo that is tried again waits for code beside that comes to a recorded step', async () => {
  const undone: string[] = [];
  let isBusy = true;
  await start(async ({ step }) => {
    let release = () => {};
    const isBooked = new Promise<void>((resolve) => {
      release = resolve;
    });
    const book = async () => {
      for (const name of ['flight', 'hotel', 'car']) {
        const undo = () => {
          if (name !== 'hotel' || !isBusy) return undone.push(name);
          isBusy = false;
          throw new Error('the line is busy');
        };
        await step.run(name, { undo }, () => 1);
        await delay(100);
      }
      release();
    };
    try {
      await Promise.all([
        book(),
        step.run('pay', { attempts: 1 }, async () => {
          await isBooked;
          throw new Error('no money');
        }),
      ]);
    } catch (error) {
      if (isFinal(error)) await step.undoAll(error);
      throw error;
    }
  });
  const { id } = await queue.enqueue(database.db, work, 1);
  await until(async () => (await stateOf(id)) === 'discarded');
  expect(undone).toEqual(['car', 'hotel', 'flight']);
});

describe('an error beside a wait', () => {
  const approval = defineSignal('approval');

  test('fails the attempt, also where the handler first awaits what is no step', async () => {
    const undone: string[] = [];
    await start(async ({ step }) => {
      try {
        await Promise.all([
          step.waitForSignal(approval),
          (async () => {
            await step.run('one', { undo: () => void undone.push('one') }, () => 1);
            await step.run('two', () => Promise.reject(new NonRetryableError('out of stock')));
          })(),
        ]);
      } catch (error) {
        for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
        await step.undoAll(error);
        throw error;
      }
    });
    const { id } = await queue.enqueue(database.db, work, 1);
    await until(async () => (await stateOf(id)) === 'discarded');
    expect((await queue.find(database.db, id))?.errors).toMatchObject([{ message: 'out of stock' }]);
    expect(undone).toEqual(['one']);
  });

  test('ends the job also where the handler takes its time once all is undone', async () => {
    const undone: string[] = [];
    await start(async ({ step }) => {
      try {
        await Promise.all([
          step.waitForSignal(approval),
          (async () => {
            await step.run('one', { undo: () => void undone.push('one') }, () => 1);
            await step.run('two', { attempts: 1 }, () => Promise.reject(new Error('out of stock')));
          })(),
        ]);
      } catch (error) {
        await step.undoAll(error);
        await database.client`select pg_sleep(1.5)`;
        throw error;
      }
    });
    const { id } = await queue.enqueue(database.db, work, 1);
    await until(async () => (await stepsOf(id)).includes('undo:one'));
    await until(async () => (await stateOf(id)) === 'discarded');
    expect(undone).toEqual(['one']);
  });

  test('that the handler catches lets its job wait, within the timeoutMs of the attempt', async () => {
    const brief = defineJob('work', { queue: 'q', payload: unvalidated<number>(), timeoutMs: 900 });
    await start(async ({ step }) => {
      const two = step.run('two', { attempts: 1 }, () => Promise.reject(new Error('not needed')));
      await Promise.all([step.waitForSignal(approval), two.catch(() => undefined)]);
    }, brief);
    const round = async () => {
      const { id } = await queue.enqueue(database.db, brief, 1);
      await until(async () => ((await queue.find(database.db, id))?.attempt ?? 0) > 0);
      await until(async () => (await stateOf(id)) !== 'running');
      return await queue.find(database.db, id);
    };
    let found: Awaited<ReturnType<typeof round>>;
    let takenMs = 0;
    do {
      const beganMs = performance.now();
      const runningMs = await runningMsUntil(
        round().then((record) => {
          found = record;
        }),
      );
      takenMs = performance.now() - beganMs - runningMs;
      // A busy machine may take the attempt's time: once more.
    } while (found?.state !== 'waiting' && takenMs > 200);
    expect(found).toMatchObject({ state: 'waiting', errors: [] });
  });

  test('is an error event where the handler throws it once the job is parked', async () => {
    let goOn = () => {};
    const errors: unknown[] = [];
    const worker = await start(async ({ step }) => {
      try {
        await Promise.all([
          step.waitForSignal(approval),
          step.run('two', () => Promise.reject(new NonRetryableError('out of stock'))),
        ]);
      } catch (error) {
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
        await step.undoAll(error);
      }
    });
    worker.on('error', (error) => errors.push(error));
    const { id } = await queue.enqueue(database.db, work, 1);
    await until(async () => (await stateOf(id)) === 'waiting');
    expect(errors).toEqual([]);
    goOn();
    await until(() => errors.length > 0);
    expect(errors).toEqual([
      {
        error: expect.objectContaining({ message: 'out of stock' }),
        during: `the handler of job ${id} of 'q', which waits`,
      },
    ]);
    expect(await stepsOf(id)).not.toContain('undo');
  });
});

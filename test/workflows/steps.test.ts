import { setTimeout as delay } from 'node:timers/promises';
import type { SQL } from 'drizzle-orm';
import { integer, PgDialect, pgTable, text } from 'drizzle-orm/pg-core';
import {
  createQueue,
  createWorker,
  DuplicateStepError,
  defineJob,
  defineSignal,
  drain,
  fixedBackoff,
  handlersFor,
  isFinal,
  NestedStepError,
  NonRetryableError,
  runNext,
  StepFailedError,
  StepLimitError,
  StepMismatchError,
  snooze,
  unvalidated,
  type Worker,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { gate } from '../support/gate.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { noteUnhandled } from '../support/unhandled.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const effects = pgTable('effects', { job: integer('job'), what: text('what') });
const work = defineJob('work', {
  queue: 'q',
  payload: unvalidated<number>(),
  output: unvalidated<unknown>(),
  backoff: fixedBackoff(0),
  maxAttempts: 4,
});
const approval = defineSignal('approval', unvalidated<{ readonly by: string }>());

beforeAll(async () => {
  await addWorkflowTables(database);
  await database.client`create table effects (job int, what text)`;
});
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
  await emptyTables(database.client, 'effects');
});

type Run = Parameters<typeof handle<typeof work>>[1];
type Step = Parameters<Run>[0]['step'];

async function start(run: Run, options: { readonly concurrency?: number } = {}): Promise<Worker> {
  const worker = createWorker(database.db, {
    queue,
    handlers: [handle(work, run)],
    queues: { q: { concurrency: options.concurrency ?? 5 } },
    log: false,
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  return worker;
}

async function ended(id: number) {
  return await queue.waitFor(database.db, work, id, { timeoutMs: 20_000 });
}

async function enqueue(options: { readonly maxAttempts?: number } = {}): Promise<number> {
  return (await queue.enqueue(database.db, work, 1, options)).id;
}

/** Nothing else of these tests waits that long. */
async function aDayPasses(): Promise<void> {
  await database.client`update queue_steps set until = until - interval '1 day'`;
  await database.client`update queue_jobs set run_at = run_at - interval '1 day'`;
}

const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;

test('a query that a handler returns is sent once, although a step beside it lets the job wait', async () => {
  await database.client.begin(async (tx) => {
    await tx`lock table effects in share mode`;
    await start(({ step, db }) => {
      step.sleep('a day', 86_400_000).catch(() => undefined);
      // Drizzle sends it each time that its `then` is called.
      return db.insert(effects).values({ job: 1, what: 'returned' });
    });
    const id = await enqueue();
    await until(async () => (await stateOf(id)) === 'scheduled');
  });
  const left = async () =>
    await database.client`
      select from pg_stat_activity where state = 'active' and query like 'insert into "effects"%'`;
  // On a busy machine it is sent only after that.
  await until(async () => (await database.db.$count(effects)) > 0);
  await until(async () => (await left()).length === 0);
  expect(await database.db.select().from(effects)).toEqual([{ job: 1, what: 'returned' }]);
});

describe('a recorded step', () => {
  test('is not run again by a later attempt, and gives back what it returned', async () => {
    const calls: string[] = [];
    await start(async ({ step, job }) => {
      const one = await step.run('one', () => {
        calls.push('one');
        return { at: new Date(0), list: [1] };
      });
      const nothing = await step.run('nothing', () => void calls.push('nothing'));
      const nil = await step.run('null', () => null);
      if (job.errors.length === 0) throw new Error('in the middle');
      return { one, nothing: String(nothing), nil };
    });
    const id = await enqueue();
    expect(await ended(id)).toMatchObject({
      state: 'completed',
      output: { one: { at: '1970-01-01T00:00:00.000Z', list: [1] }, nothing: 'undefined', nil: null },
    });
    expect(calls).toEqual(['one', 'nothing']);
    const steps = await queue.workflows.steps(database.db, id);
    expect(steps.map(({ name, kind, attempts }) => ({ name, kind, attempts }))).toEqual([
      { name: 'one', kind: 'run', attempts: 1 },
      { name: 'nothing', kind: 'run', attempts: 1 },
      { name: 'null', kind: 'run', attempts: 1 },
    ]);
    expect(steps.every(({ endedAt }) => endedAt !== null)).toBe(true);
  });

  test('makes its attempt count as the first', async () => {
    const seen: number[] = [];
    await start(async ({ step, job }) => {
      seen.push(job.attempt);
      const done = seen.length;
      await step.run(`turn-${done}`, () => done);
      if (done < 8) throw new Error('again');
    });
    const id = await enqueue({ maxAttempts: 2 });
    expect(await ended(id)).toMatchObject({ state: 'completed' });
    expect(seen).toEqual([1, 2, 2, 2, 2, 2, 2, 2]);
  });

  test('runs beside others, in any order', async () => {
    const calls: string[] = [];
    await start(async ({ step, job }) => {
      const names = ['a', 'b', 'c', 'd'];
      if (job.errors.length > 0) names.reverse();
      const made = await Promise.all(
        names.map((name) =>
          step.run(name, () => {
            calls.push(name);
            return name;
          }),
        ),
      );
      if (job.errors.length === 0) throw new Error('in the middle');
      return made;
    });
    expect(await ended(await enqueue())).toMatchObject({ output: ['d', 'c', 'b', 'a'] });
    expect(calls).toEqual(['a', 'b', 'c', 'd']);
  });

  test('of a transaction commits with what it writes, once', async () => {
    await start(async ({ step, job }) => {
      const made = await step.transaction('write', async (tx) => {
        await tx.insert(effects).values({ job: job.id, what: 'written' });
        return { written: true };
      });
      if (job.errors.length === 0) throw new Error('in the middle');
      return made;
    });
    expect(await ended(await enqueue())).toMatchObject({ output: { written: true } });
    expect(await database.db.select().from(effects)).toHaveLength(1);
  });

  test('of a transaction that rolls back is none', async () => {
    await start(async ({ step, job }) => {
      await step.transaction('write', async (tx) => {
        await tx.insert(effects).values({ job: job.id, what: 'written' });
        if (job.errors.length === 0) throw new Error('roll back');
      });
    });
    await ended(await enqueue());
    expect(await database.db.select().from(effects)).toHaveLength(1);
  });

  test('of a transaction that completes the job is refused, and says where to complete it', async () => {
    await start(async ({ step, job, complete }) => {
      await step.transaction('write', async (tx) => {
        await tx.insert(effects).values({ job: job.id, what: 'written' });
        await complete(tx, 'early');
      });
    });
    expect(await ended(await enqueue({ maxAttempts: 1 }))).toMatchObject({
      state: 'discarded',
      errors: [
        { message: expect.stringMatching(/'write'.*complete\(tx\) has ended its job.*after the last step/) },
      ],
    });
    expect(await database.db.select().from(effects)).toEqual([]);
  });

  test('comes after a complete(tx) that was rolled back: a transaction, an undo and a wait', async () => {
    await start(async ({ step, job, complete }) => {
      const add = async (what: string) =>
        void (await database.db.insert(effects).values({ job: job.id, what }));
      try {
        await step.transaction(
          'before',
          { undo: async (tx) => void (await tx.insert(effects).values({ job: job.id, what: 'undone' })) },
          async () => undefined,
        );
        await database.db
          .transaction(async (tx) => {
            await complete(tx, 'early');
            throw new Error('rolled back');
          })
          .catch(() => add('rolled back'));
        await step.transaction('after', async (tx) => {
          await tx.insert(effects).values({ job: job.id, what: 'after' });
        });
        await step.sleep('for a moment', 1);
        throw new NonRetryableError('the end');
      } catch (error) {
        if (isFinal(error)) await step.undoAll(error);
        throw error;
      }
    });
    const id = await enqueue({ maxAttempts: 1 });
    expect(await ended(id)).toMatchObject({ state: 'discarded', errors: [{ message: 'the end' }] });
    const rows = await database.db.select().from(effects);
    expect(rows.map(({ what }) => what)).toEqual(['rolled back', 'after', 'rolled back', 'undone']);
  });

  test('comes after a complete(tx) that was rolled back in runNext, too', async () => {
    const run: Run = async ({ db, step, complete }) => {
      const early = db.transaction(async (tx) => {
        await complete(tx, 'early');
        throw new Error('rolled back');
      });
      await early.catch(() => undefined);
      await step.transaction('after', async () => undefined);
      await step.sleep('for a day', 86_400_000);
      return 'slept';
    };
    const id = await enqueue();
    const next = () => runNext(database.db, { queue, handlers: [handle(work, run)] });
    expect(await next()).toMatchObject({ outcome: 'waiting' });
    await aDayPasses();
    expect(await next()).toMatchObject({ outcome: 'failed' });
    expect(await queue.workflows.steps(database.db, id)).toMatchObject([
      { name: 'after' },
      { name: 'for a day' },
    ]);
  });

  test('that runNext has rolled back is no progress: the attempts are used up', async () => {
    let calls = 0;
    const run: Run = async ({ step }) => {
      await step.run('one', () => ++calls);
      await step.transaction('two', async () => undefined);
      throw new Error('down');
    };
    const id = await enqueue({ maxAttempts: 3 });
    const next = () => runNext(database.db, { queue, handlers: [handle(work, run)] });
    for (let attempt = 1; attempt <= 3; attempt++) {
      expect(await next()).toMatchObject({ outcome: 'failed', job: { id, attempt } });
    }
    expect(await next()).toBeUndefined();
    expect(calls).toBe(3);
    const { errors } = await ended(id);
    expect(errors.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
  });

  test('before a deadline of runNext is no progress either: all was rolled back', async () => {
    const late = defineJob('late', { timeoutMs: 20, maxAttempts: 1 });
    const { id } = await queue.enqueue(database.db, late);
    const handlers = [
      handle(late, async ({ step }) => {
        await step.run('one', () => 1);
        await new Promise<void>(() => undefined);
      }),
    ];
    expect(await runNext(database.db, { queue, handlers })).toMatchObject({ outcome: 'failed' });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'discarded' });
  });

  test('can be recorded by a call of its own', async () => {
    const turns: number[] = [];
    await start(async ({ step, job }) => {
      for (let turn = 0; turn < 3; turn++) {
        const open = await step.begin<number>(`turn-${turn}`);
        if (open.done) continue;
        turns.push(turn);
        if (turn === 1 && job.errors.length === 0) throw new Error('in the middle of a turn');
        await open.record(turn * 10);
      }
      return (await step.begin<number>('turn-9')).output ?? 'none';
    });
    expect(await ended(await enqueue())).toMatchObject({ state: 'completed', output: 'none' });
    expect(turns).toEqual([0, 1, 1, 2]);
  });

  test('that was begun can be recorded by a second call where the first was refused', async () => {
    await start(async ({ step }) => {
      const open = await step.begin<string>('one');
      await open.record('x'.repeat(1024 * 1024)).catch(() => open.record('short'));
      await expect(open.record('twice')).rejects.toThrow('recorded already');
    });
    const id = await enqueue();
    expect(await ended(id)).toMatchObject({ state: 'completed' });
    expect(await queue.workflows.steps(database.db, id)).toMatchObject([{ name: 'one', output: 'short' }]);
  });
});

describe('a wait', () => {
  test('holds nothing, spends no attempt, and goes on after its time', async () => {
    const seen: number[] = [];
    const worker = await start(async ({ step, job }) => {
      seen.push(job.attempt);
      await step.sleep('a day', 86_400_000);
      return 'slept';
    });
    const waits: (number | null)[] = [];
    worker.on('waiting', ({ delayMs }) => waits.push(delayMs));
    const id = await enqueue();
    await until(() => waits.length === 1);
    expect(await queue.workflows.steps(database.db, id)).toMatchObject([{ kind: 'sleep', endedAt: null }]);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'scheduled', attempt: 0 });
    expect(worker.health()).toMatchObject({ busy: 0 });
    await aDayPasses();
    expect(await ended(id)).toMatchObject({ state: 'completed', output: 'slept', attempt: 1, errors: [] });
    expect(seen).toEqual([1, 1]);
    expect(waits[0]).toBeLessThanOrEqual(86_400_000);
    const [slept] = await queue.workflows.steps(database.db, id);
    expect(slept?.endedAt).toEqual(slept?.until);
  });

  test('until a time in the past is over at once', async () => {
    const worker = await start(async ({ step }) => {
      await step.sleepUntil('long ago', new Date(0));
      return 1;
    });
    const waits: unknown[] = [];
    worker.on('waiting', (told) => waits.push(told));
    expect(await ended(await enqueue())).toMatchObject({ state: 'completed' });
    expect(waits).toEqual([]);
  });

  test('gets a signal that comes during it', async () => {
    const worker = await start(async ({ step }) => await step.waitForSignal(approval));
    let waits = 0;
    worker.on('waiting', () => waits++);
    const id = await enqueue();
    await until(() => waits === 1);
    expect(await stateOf(id)).toBe('waiting');
    expect(await queue.workflows.signal(database.db, { id }, approval, { by: 'Ada' })).toBe('sent');
    expect(await ended(id)).toMatchObject({ state: 'completed', output: { by: 'Ada' } });
    expect(await queue.workflows.signal(database.db, { id }, approval, { by: 'Eve' })).toBe('gone');
  });

  test('gets a signal that came before it, and before its job began', async () => {
    const id = await enqueue();
    await queue.workflows.signal(database.db, { id, job: work }, approval, { by: 'Ada' });
    await start(async ({ step }) => await step.waitForSignal(approval));
    expect(await ended(id)).toMatchObject({ output: { by: 'Ada' } });
  });

  test('gets each signal once, in the order of their commits', async () => {
    await start(async ({ step }) => {
      const got: string[] = [];
      for (let at = 0; at < 3; at++) {
        const { by } = await step.waitForSignal(approval, { name: `approval ${at}` });
        got.push(by);
      }
      return got;
    });
    const id = await enqueue();
    for (const by of ['a', 'b', 'c']) {
      await queue.workflows.signal(database.db, { id }, approval, { by });
      await until(async () => (await queue.workflows.steps(database.db, id)).length > 0);
    }
    expect(await ended(id)).toMatchObject({ output: ['a', 'b', 'c'] });
  });

  test('that times out gets none, and a later wait gets what came after it', async () => {
    await start(async ({ step }) => {
      const first = await step.waitForSignal(approval, { timeoutMs: 50 });
      const second = await step.waitForSignal(approval, { name: 'once more' });
      return [first ?? 'none', second];
    });
    const id = await enqueue();
    await until(async () => (await queue.workflows.steps(database.db, id)).length === 2);
    await queue.workflows.signal(database.db, { id }, approval, { by: 'Ada' });
    expect(await ended(id)).toMatchObject({ output: ['none', { by: 'Ada' }] });
  });

  test('is not over before its time, however long its attempt waits for what is recorded', async () => {
    const dialect = new PgDialect();
    // As from a pool that has no free connection for a while.
    let delayed = 0;
    const execute = async (query: SQL) => {
      const isQuestion = /^\s*select s\.job_id, s\.name/.test(dialect.sqlToQuery(query).sql);
      if (isQuestion && ++delayed > 0) await delay(1_500);
      return await database.db.execute(query);
    };
    const db: typeof database.db = Object.create(database.db, { execute: { value: execute } });
    const worker = createWorker(db, {
      queue,
      handlers: [
        handle(work, async ({ step, job }) => {
          await step.sleep('nap', 2_500);
          const [row] = await database.client`
            select until <= statement_timestamp() as over from queue_steps where job_id = ${job.id}`;
          return row?.over;
        }),
      ],
      queues: { q: { concurrency: 5 } },
      log: false,
    });
    onTestFinished(() => worker.stop());
    await worker.start();
    const id = await enqueue();
    await until(async () => (await stateOf(id)) === 'scheduled');
    await queue.runNow(database.db, id);
    expect(await ended(id)).toMatchObject({ output: true });
    expect(delayed).toBeGreaterThan(0);
  });

  test('beside a step waits until that is over', async () => {
    const calls: string[] = [];
    await start(async ({ step }) => {
      await Promise.all([
        step.sleep('sleep', 10),
        step.run('run', async () => {
          await new Promise((resolve) => setTimeout(resolve, 100));
          calls.push('run');
        }),
      ]);
    });
    expect(await ended(await enqueue())).toMatchObject({ state: 'completed' });
    expect(calls).toEqual(['run']);
  });

  test('ends with the first of several', async () => {
    await start(async ({ step }) => {
      return await Promise.race([
        step.waitForSignal(approval).then(({ by }) => by),
        step.sleep('too late', 200).then(() => 'nobody'),
      ]);
    });
    const id = await enqueue();
    expect(await ended(id)).toMatchObject({ output: 'nobody' });
  });

  test('lets none of the code after it run, no catch and no finally', async () => {
    const ran: string[] = [];
    await start(async ({ step }) => {
      try {
        await step.sleep('a moment', 50);
      } catch {
        ran.push('catch');
      } finally {
        ran.push('finally');
      }
    });
    await ended(await enqueue());
    expect(ran).toEqual(['finally']);
  });

  test('of a cancelled job ends', async () => {
    const worker = await start(async ({ step }) => await step.waitForSignal(approval));
    let waits = 0;
    worker.on('waiting', () => waits++);
    const id = await enqueue();
    await until(() => waits === 1);
    expect(await queue.cancel(database.db, id, 'no longer')).toMatchObject({ cancelled: true });
    expect(await ended(id)).toMatchObject({ state: 'cancelled' });
  });

  test('leaves a drain empty, and the next one goes on', async () => {
    const handlers = [
      handle(work, async ({ step }) => {
        await step.run('one', () => 1);
        return await step.waitForSignal(approval);
      }),
    ];
    const id = await enqueue();
    const options = { queue, handlers, deadlineMs: 20_000, log: false } as const;
    expect(await drain(database.db, options)).toMatchObject({ snoozed: 1, completed: 0, empty: true });
    await queue.workflows.signal(database.db, { id }, approval, { by: 'Ada' });
    expect(await drain(database.db, options)).toMatchObject({ completed: 1, empty: true });
    expect(await queue.find(database.db, work, id)).toMatchObject({ output: { by: 'Ada' } });
  });
});

describe('a step that fails', () => {
  test('for good throws the same in each later run', async () => {
    const seen: string[] = [];
    await start(async ({ step }) => {
      try {
        await step.run('charge', { attempts: 2 }, () => {
          throw new TypeError('no money');
        });
      } catch (error) {
        if (!(error instanceof StepFailedError)) throw error;
        seen.push(`${error.step} ${error.attempts} ${error.error.message}`);
        await step.sleep('a moment', 20);
        return 'went on';
      }
    });
    const id = await enqueue();
    expect(await ended(id)).toMatchObject({ state: 'completed', output: 'went on' });
    expect(seen).toEqual(['charge 2 no money', 'charge 2 no money']);
  });

  test('and then succeeds is recorded with the number of its tries', async () => {
    let tries = 0;
    await start(async ({ step }) => {
      await step.run('charge', { attempts: 5 }, () => {
        if (++tries < 3) throw new Error('busy');
        return tries;
      });
    });
    const id = await enqueue();
    expect(await ended(id)).toMatchObject({ state: 'completed' });
    expect(await queue.workflows.steps(database.db, id)).toMatchObject([
      { name: 'charge', attempts: 3, error: null, output: 3 },
    ]);
  });

  test('within its timeoutMs fails its attempt', async () => {
    const id = await enqueue({ maxAttempts: 1 });
    await start(async ({ step }) => {
      await step.run('hang', { timeoutMs: 20 }, async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        await new Promise(() => undefined);
      });
    });
    await ended(id).catch(() => undefined);
    expect(await queue.find(database.db, id)).toMatchObject({
      state: 'discarded',
      errors: [{ message: expect.stringContaining("The step 'hang'") }],
    });
  });

  test('undoes what was done, the last first, and goes on undoing after a crash', async () => {
    const undone: string[] = [];
    let broken = true;
    await start(async ({ step, job }) => {
      try {
        await step.run('charge', { undo: (output) => void undone.push(`refund ${output}`) }, () => 'c1');
        await step.transaction(
          'reserve',
          { undo: (tx) => tx.insert(effects).values({ job: job.id, what: 'released' }) },
          async (tx) => {
            await tx.insert(effects).values({ job: job.id, what: 'reserved' });
          },
        );
        await step.run(
          'ship',
          {
            undo: () => {
              undone.push('call back');
              if (broken) {
                broken = false;
                throw new Error('the line is busy');
              }
            },
          },
          () => 's1',
        );
        throw new NonRetryableError('out of stock');
      } catch (error) {
        if (isFinal(error)) await step.undoAll(error);
        throw error;
      }
    });
    const id = await enqueue();
    await ended(id).catch(() => undefined);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'discarded' });
    expect(undone).toEqual(['call back', 'call back', 'refund c1']);
    const what = await database.db.select({ what: effects.what }).from(effects);
    expect(what.map(({ what }) => what)).toEqual(['reserved', 'released']);
  });

  test('is undone, however long its name', async () => {
    const undone: string[] = [];
    await start(async ({ step }) => {
      try {
        await step.run('n'.repeat(200), { undo: () => void undone.push('it') }, () => 1);
        throw new NonRetryableError('out of stock');
      } catch (error) {
        if (isFinal(error)) await step.undoAll(error);
        throw error;
      }
    });
    const id = await enqueue();
    await ended(id).catch(() => undefined);
    expect(undone).toEqual(['it']);
    expect((await queue.find(database.db, id))?.errors).toMatchObject([{ name: 'NonRetryableError' }]);
  });
});

test.each(['has failed before', 'waits for a child'])(
  'the last step that a job may have counts once, also one that %s',
  async (what) => {
    const child = defineJob('child', { queue: 'q' });
    const run: Run = async ({ step, job }) => {
      const { id } = job;
      const fill = (most: number) => database.client`
      insert into queue_steps (job_id, queue, name, kind, attempts, fence, started_at, ended_at)
      select ${id}, 'q', 'step ' || n, 'run', 1, 0, now(), now() from generate_series(1, ${most}::int) as n
      on conflict do nothing`;
      if (what === 'has failed before') {
        await step.run('last', { attempts: 2 }, async () => {
          await fill(9_999);
          if (job.errors.length === 0) throw new Error('once');
        });
        return;
      }
      const enqueued = await step.enqueue('child', child);
      await fill(9_998);
      await step.waitForJob(enqueued);
    };
    const waits = async () => (await database.client`select from queue_steps where kind = 'wait'`).length > 0;
    const handlers = [handle(work, run), handle(child, () => until(waits))];
    const worker = createWorker(database.db, { queue, handlers, queues: { q: {} }, log: false });
    onTestFinished(() => worker.stop());
    await worker.start();
    const id = await enqueue({ maxAttempts: 3 });
    expect(await ended(id)).toMatchObject({ state: 'completed' });
    const [steps] = await database.client`select count(*)::int as count from queue_steps`;
    expect(steps?.count).toBe(10_000);
  },
);

test('a step whose record had to wait stands before those that began after it', async () => {
  await database.client.unsafe(`
    create sequence refusals;
    create sequence permissions;
    create function refuse() returns trigger language plpgsql as $$ begin
      if not (select is_called from permissions) then
        perform nextval('refusals');
        raise exception 'not now' using errcode = '55P03';
      end if;
      return new;
    end $$;
    create trigger refuse before insert on queue_steps
    for each row when (new.name = 'one') execute function refuse();
  `);
  onTestFinished(async () => {
    await database.client`drop function refuse cascade`;
    await database.client`drop sequence refusals, permissions`;
  });
  const isRefused = async () => {
    const [row] = await database.client<{ refused: boolean }[]>`select is_called as refused from refusals`;
    return row?.refused;
  };
  await start(async ({ step }) => {
    const allow = async () => {
      await until(isRefused);
      await database.client`select nextval('permissions')`;
      await until(async () => (await database.client`select from queue_steps where name = 'one'`).length > 0);
    };
    await Promise.all([
      step.run('one', () => undefined),
      // Later than one by more than a statement is ever under way.
      delay(1_000).then(() => step.run('two', allow)),
    ]);
  });
  const id = await enqueue();
  await ended(id);
  const steps = await queue.workflows.steps(database.db, id);
  expect(steps.map(({ name }) => name)).toEqual(['one', 'two']);
});

test.each(['run', 'signal', 'first', 'sleep'] as const)(
  'a step of the sort %s that is one too many does nothing',
  async (sort) => {
    let calls = 0;
    await start(async ({ step, job }) => {
      if (job.errors.length === 0) {
        await database.client`
          insert into queue_steps (job_id, queue, name, kind, attempts, fence, started_at, ended_at)
          select ${job.id}, 'q', 'step ' || n, 'run', 1, 0, now(), now() from generate_series(1, 10000) as n`;
        throw new Error('in the middle');
      }
      if (sort === 'run') await step.run('late', () => calls++);
      if (sort === 'signal') await step.waitForSignal(approval, { name: 'late', timeoutMs: 0 });
      if (sort === 'first') await step.first('late', { now: { delayMs: 0 } });
      if (sort === 'sleep') await step.sleep('late', 0);
    });
    const id = await enqueue();
    await ended(id).catch(() => undefined);
    expect((await queue.find(database.db, id))?.errors.at(-1)).toMatchObject({
      name: new StepLimitError('').name,
    });
    expect(calls).toBe(0);
    const [late] = await database.client`select count(*)::int as count from queue_steps where name = 'late'`;
    expect(late?.count).toBe(0);
  },
);

describe('what a handler must not do', () => {
  const failing = async (run: Run) => {
    const id = await enqueue({ maxAttempts: 1 });
    await start(run);
    await ended(id).catch(() => undefined);
    const record = await queue.find(database.db, id);
    return record?.errors.at(-1);
  };

  test('a name for two steps', async () => {
    const error = await failing(async ({ step }) => {
      await step.run('a', () => 1);
      await step.run('a', () => 2);
    });
    expect(error).toMatchObject({ name: new DuplicateStepError('work', 'a').name });
  });

  test('a step in a step', async () => {
    const error = await failing(async ({ step }) => {
      await step.run('a', async () => await step.sleep('b', 10));
    });
    expect(error).toMatchObject({ name: new NestedStepError('work', 'b', 'a').name });
  });

  test('another kind of step under a recorded name', async () => {
    await start(async ({ step, job }) => {
      if (job.errors.length === 0) {
        await step.run('a', () => 1);
        throw new Error('in the middle');
      }
      await step.sleep('a', 10);
    });
    const id = await enqueue({ maxAttempts: 2 });
    await ended(id).catch(() => undefined);
    const record = await queue.find(database.db, id);
    expect(record?.errors.at(-1)).toMatchObject({
      name: new StepMismatchError('work', 'a', 'run', 'sleep').name,
      message: expect.stringContaining("recorded as 'run'"),
    });
  });

  test('an output above 1 MB', async () => {
    const error = await failing(async ({ step }) => {
      await step.run('a', () => 'x'.repeat(1024 * 1024));
    });
    expect(error).toMatchObject({ name: new StepLimitError('').name });
  });

  test('an output that JSON cannot hold: it is not made again, and the error says where', async () => {
    let calls = 0;
    const id = await enqueue({ maxAttempts: 4 });
    await start(async ({ step }) => {
      await step.run('charge', () => {
        calls++;
        return { id: 1, lines: [{ at: Number.NaN }] };
      });
    });
    const message =
      "The output of the step 'charge' cannot be stored at lines[0].at: " + 'NaN is not a JSON number';
    expect(await ended(id)).toMatchObject({
      state: 'discarded',
      errors: [{ name: new NonRetryableError('').name, message }],
    });
    expect(calls).toBe(1);
  });

  test('arguments that it takes for something else are refused by name', async () => {
    const none = null as never;
    const wrong: Readonly<Record<string, (step: Step) => Promise<unknown>>> = {
      'step: name must be a string that is not empty, got undefined': (step) =>
        step.begin(undefined as never),
      "step 'a': options must be an object, got null": (step) => step.run('a', none, () => 1),
      "step 'b': unknown option 'attemps'; did you mean attempts?": (step) =>
        step.run('b', { attemps: 2 } as never, () => 1),
      "step 'c': unknown option 'timeoutMs'; valid options: undo": (step) =>
        step.transaction('c', { timeoutMs: 5 } as never, async () => 1),
      'waitForSignal: options must be an object, got null': (step) => step.waitForSignal(approval, none),
      "waitForSignal: unknown option 'timeout'; did you mean timeoutMs?": (step) =>
        step.waitForSignal(approval, { timeout: 5 } as never),
      "step 'd': options must be an object, got null": (step) =>
        step.enqueueMany('d', work, [{ payload: 1 }], none),
      "step 'e': options must be an object, got null": (step) => step.enqueue('e', work, 1, none),
      "step 'f': options must be an object, got null": (step) => step.first('f', { approval }, none),
      "step 'g': unknown option 'cancel'; did you mean cancelRest?": (step) =>
        step.first('g', { approval }, { cancel: true } as never),
      "step.token: unknown option 'expires'; did you mean expiresInMs?": (step) =>
        step.token(approval, { expires: 5 } as never),
    };
    const messages: unknown[] = [];
    const id = await enqueue();
    await start(async ({ step }) => {
      for (const call of Object.values(wrong)) {
        messages.push(await call(step).catch((error: Error) => error.message));
      }
    });
    expect(await ended(id)).toMatchObject({ state: 'completed' });
    expect(messages).toEqual(Object.keys(wrong));
  });

  test('a NUL character in an output or a name', async () => {
    expect(await failing(async ({ step }) => void (await step.run('a', () => '\0')))).toBeDefined();
    expect((await failing(async ({ step }) => void (await step.run('a\0', () => 1))))?.message).toContain(
      'NUL',
    );
  });
});

describe('what is left behind', () => {
  test('by a handler that has returned parks nothing, however long its output is checked', async () => {
    let isChecking = false;
    const slowly = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: async (value: unknown) => {
          isChecking = true;
          // Some turns of the event loop, in which the wait could park the job.
          for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
          return { value: value as string };
        },
      },
    } as const;
    const checked = defineJob('checked', { queue: 'q', output: slowly });
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(checked, async ({ step }) => {
          return await Promise.race([
            step.waitForSignal(approval).then(() => 'signal'),
            step.run('b', () => 'b'),
          ]);
        }),
      ],
      log: false,
    });
    onTestFinished(() => worker.stop());
    await worker.start();
    const { id } = await queue.enqueue(database.db, checked);
    const ended = await queue.waitFor(database.db, checked, id, { timeoutMs: 60_000 });
    expect(ended).toMatchObject({ state: 'completed', output: 'b' });
    expect(isChecking).toBe(true);
  });

  test('by a wait begins no step, and meets no error', async () => {
    const seen: string[] = [];
    let goOn = () => {};
    const slow = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const worker = await start(async ({ step }) => {
      const other = async () => {
        // Not a step, so the wait beside it does not know of it.
        await slow;
        await step.run('late', () => void seen.push('late'));
      };
      try {
        await Promise.all([step.sleep('a day', 86_400_000), other()]);
      } catch (error) {
        seen.push(String(error));
      }
      return seen.length;
    });
    let waits = 0;
    worker.on('waiting', () => waits++);
    const id = await enqueue();
    await until(() => waits === 1);
    goOn();
    await aDayPasses();
    expect(await ended(id)).toMatchObject({ state: 'completed', output: 1 });
    expect(seen).toEqual(['late']);
  });
});

describe('a step that is under way when its handler ends', () => {
  test('is recorded although the step beside it has failed, and is not run again', async () => {
    const seen: string[] = [];
    const failed = gate();
    await start(async ({ step }) => {
      return await Promise.all([
        step.run('charge', async () => {
          seen.push('charge');
          await failed.opened;
          // The handler has thrown by then.
          await delay(50);
          return 'charged';
        }),
        step.transaction('reserve', async (tx) => {
          seen.push('reserve');
          await failed.opened;
          await delay(50);
          await tx.insert(effects).values({ job: 1, what: 'reserved' });
          return 'reserved';
        }),
        step.run('ship', () => {
          seen.push('ship');
          failed.open();
          if (seen.length < 4) throw new Error('no courier');
          return 'shipped';
        }),
      ]);
    });
    const id = await enqueue();
    expect(await ended(id)).toMatchObject({ output: ['charged', 'reserved', 'shipped'] });
    expect(seen.sort()).toEqual(['charge', 'reserve', 'ship', 'ship']);
    expect(await database.db.select().from(effects)).toHaveLength(1);
  });

  test('is recorded although nothing awaits it, also by a handler that is not async', async () => {
    const rejections = noteUnhandled();
    const late = async () => {
      await delay(50);
      return 'late';
    };
    await start(async ({ step }) => {
      void step.run('late', late);
      void step.sleep('a day', 86_400_000);
      return 'async';
    });
    const id = await enqueue();
    expect(await ended(id)).toMatchObject({ state: 'completed', output: 'async' });
    const steps = await queue.workflows.steps(database.db, id);
    expect(steps.find(({ name }) => name === 'late')).toMatchObject({ output: 'late' });

    const sync = defineJob('sync', { queue: 'sync', output: unvalidated<string>() });
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(sync, ({ step }) => {
          void step.run('late', late);
          return 'sync';
        }),
      ],
      log: false,
    });
    onTestFinished(() => worker.stop());
    await worker.start();
    const { id: other } = await queue.enqueue(database.db, sync);
    const end = await queue.waitFor(database.db, sync, other, { timeoutMs: 20_000 });
    expect(end).toMatchObject({ state: 'completed', output: 'sync' });
    expect(await queue.workflows.steps(database.db, other)).toMatchObject([{ name: 'late', output: 'late' }]);
    expect(rejections).toEqual([]);
  });

  test('begins no other, and what it leaves ends no process', async () => {
    const rejections = noteUnhandled();
    const seen: string[] = [];
    await start(async ({ step }) => {
      const open = await step.begin<string>('open');
      const rest = async () => {
        await step.run('one', () => delay(50));
        seen.push('one');
        await step.run('two', () => void seen.push('two'));
      };
      void rest();
      void until(() => seen.includes('ended')).then(async () => {
        await open.record('too late');
        seen.push('recorded');
      });
      throw new NonRetryableError('at once');
    });
    const id = await enqueue();
    expect(await ended(id)).toMatchObject({ state: 'discarded', errors: [{ message: 'at once' }] });
    seen.push('ended');
    // What must not come would need less than that.
    await delay(100);
    expect(seen).toEqual(['one', 'ended']);
    expect((await queue.workflows.steps(database.db, id)).map(({ name }) => name)).toEqual(['one']);
    expect(rejections).toEqual([]);
  });

  test('is left behind at the end of the time of the attempt, and says nothing then', async () => {
    const rejections = noteUnhandled();
    const limited = defineJob('limited', { queue: 'q', timeoutMs: 300, maxAttempts: 1 });
    const over = gate();
    const left = gate();
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(limited, async ({ step }) => {
          void step.run('endless', async () => {
            await over.opened;
            left.open();
          });
          void step.run('obedient', ({ signal }) => {
            return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
          });
        }),
      ],
      log: false,
    });
    onTestFinished(() => worker.stop());
    await worker.start();
    const { id } = await queue.enqueue(database.db, limited);
    const end = await queue.waitFor(database.db, limited, id, { timeoutMs: 20_000 });
    expect(end).toMatchObject({ state: 'discarded', errors: [{ name: 'JobTimeoutError' }] });
    over.open();
    await left.opened;
    await delay(50);
    expect(rejections).toEqual([]);
  });

  test('is not waited for when what is around the handler has given up', async () => {
    const around = {
      run: async (_: unknown, next: () => Promise<unknown>) => {
        await Promise.race([next(), delay(50)]);
        throw new NonRetryableError('given up');
      },
    };
    const surrounded = createQueue({ tables, around, workflows: workflowsIn(workflowTables) });
    const over = gate();
    onTestFinished(() => over.open());
    const worker = createWorker(database.db, {
      queue: surrounded,
      handlers: [handle(work, async ({ step }) => await step.run('endless', () => over.opened))],
      log: false,
    });
    onTestFinished(() => worker.stop());
    await worker.start();
    expect(await ended(await enqueue())).toMatchObject({
      state: 'discarded',
      errors: [{ message: 'given up' }],
    });
  });
});

describe('a cancelled job', () => {
  test('at its deadline wakes, undoes what it has done, and is discarded', async () => {
    const dated = defineJob('dated', { queue: 'q', deadlineMs: 3_600_000 });
    const log: string[] = [];
    const handlers = [
      handle(dated, async ({ step }) => {
        try {
          await step.run('charge', { undo: () => log.push('refund') }, () => log.push('charge'));
          await step.waitForSignal(approval);
        } catch (error) {
          log.push(Object(error).name);
          if (isFinal(error)) await step.undoAll(error);
          throw error;
        }
      }),
    ];
    const worker = createWorker(database.db, { queue, handlers, queues: { q: {} }, log: false });
    onTestFinished(() => worker.stop());
    await worker.start();
    const { id } = await queue.enqueue(database.db, dated);
    await until(async () => (await stateOf(id)) === 'scheduled');
    const [job] = await database.client`
      select extract(epoch from run_at - created_at)::float8 as due_s from queue_jobs where id = ${id}`;
    expect(Math.abs(job?.due_s - 3_600)).toBeLessThan(2);
    await database.client`
      update queue_jobs set run_at = run_at - interval '1 hour', created_at = created_at - interval '1 hour'`;
    await until(async () => (await stateOf(id)) === 'discarded');
    expect(log).toEqual(['charge', 'JobDeadlineError', 'refund']);
    expect((await queue.find(database.db, id))?.errors).toMatchObject([{ name: 'JobDeadlineError' }]);
  });

  test.each(['snooze', 'sleep'] as const)(
    'that is too old and would %s is discarded, and not run again',
    async (how) => {
      const dated = defineJob('dated', { queue: 'q', deadlineMs: 3_600_000 });
      let runs = 0;
      const handlers = [
        handle(dated, async ({ step, signal }) => {
          runs++;
          expect(signal.aborted).toBe(true);
          await step.undoAll(signal.reason);
          if (how === 'snooze') return snooze(3_600_000);
          await step.sleep('an hour', 3_600_000);
        }),
      ];
      const { id } = await queue.enqueue(database.db, dated);
      await database.client`update queue_jobs set created_at = created_at - interval '1 hour'`;
      const worker = createWorker(database.db, { queue, handlers, queues: { q: {} }, log: false });
      onTestFinished(() => worker.stop());
      await worker.start();
      await until(async () => (await stateOf(id)) === 'discarded');
      expect(runs).toBe(1);
      expect((await queue.find(database.db, id))?.errors).toMatchObject([{ name: 'JobDeadlineError' }]);
    },
  );

  test('undoes what it has done, with a signal that is not aborted, and ends as cancelled', async () => {
    const undone: boolean[] = [];
    let isRunning = false;
    await start(async ({ step, signal }) => {
      try {
        await step.run('one', { undo: (_, info) => void undone.push(info.signal.aborted) }, () => 1);
        isRunning = true;
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      } catch (error) {
        if (isFinal(error)) await step.undoAll(error);
        throw error;
      }
    });
    const id = await enqueue();
    await until(() => isRunning);
    await queue.cancel(database.db, id, 'no longer');
    await ended(id).catch(() => undefined);
    expect(await stateOf(id)).toBe('cancelled');
    expect(undone).toEqual([false]);
  });

  test('does not count the step that it has stopped as failed', async () => {
    let isRunning = false;
    await start(async ({ step, signal }) => {
      await step.run('one', { attempts: 3 }, async () => {
        isRunning = true;
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      });
    });
    const id = await enqueue();
    await until(() => isRunning);
    await queue.cancel(database.db, id, 'no longer');
    await ended(id).catch(() => undefined);
    expect(await queue.workflows.steps(database.db, id)).toEqual([]);
  });
});

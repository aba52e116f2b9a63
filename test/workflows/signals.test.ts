import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  drain,
  fixedBackoff,
  handlersFor,
  InvalidSignalError,
  MailboxFullError,
  unvalidated,
  type Worker,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const work = defineJob('work', {
  queue: 'q',
  payload: unvalidated<number>(),
  output: unvalidated<unknown>(),
  backoff: fixedBackoff(0),
});
const answer = defineSignal('answer', unvalidated<number>());
const bare = defineSignal('bare');

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});
afterEach(() => atFaultPoints());

type Run = Parameters<typeof handle<typeof work>>[1];

async function start(run: Run): Promise<Worker> {
  const handlers = [handle(work, run)];
  const worker = createWorker(database.db, {
    queue,
    handlers,
    queues: { q: { concurrency: 50 } },
    log: false,
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  return worker;
}

const enqueue = async () => (await queue.enqueue(database.db, work, 1)).id;
async function outputOf(id: number): Promise<unknown> {
  const record = await queue.waitFor(database.db, work, id, { timeoutMs: 60_000 });
  return record.state === 'completed' ? record.output : record.state;
}
const send = (id: number, value: number, key?: string) =>
  queue.workflows.signal(database.db, { id }, answer, value, { key });

/** Resolves once a worker asks for a signal, and lets the test act before the worker goes on. */
function atReceive(): { readonly reached: Promise<void>; goOn(): void } {
  let goOn = () => {};
  const gate = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const reached = new Promise<void>((resolve) => {
    atFaultPoints(async (at) => {
      if (at !== 'signal: received') return;
      resolve();
      await gate;
    });
  });
  return { reached, goOn };
}

describe('a signal and a wait at the same time', () => {
  test('a sender whose transaction is open holds the mailbox: the wait gets what it commits', async () => {
    const id = await enqueue();
    let waits = 0;
    await database.db.transaction(async (tx) => {
      await queue.workflows.signal(tx, { id }, answer, 7);
      const worker = await start(async ({ step }) => await step.waitForSignal(answer));
      worker.on('waiting', () => waits++);
      await until(async () => {
        const blocked = await database.client`
          select from pg_stat_activity where wait_event_type = 'Lock' and query like '%queue_mailboxes%'`;
        return blocked.length > 0;
      });
    });
    expect(await outputOf(id)).toBe(7);
    expect(waits).toBe(0);
  });

  test('a signal that comes after the wait has looked, and before the job is parked, wakes it', async () => {
    const at = atReceive();
    await start(async ({ step }) => await step.waitForSignal(answer));
    const id = await enqueue();
    await at.reached;
    expect(await send(id, 7)).toBe('sent');
    at.goOn();
    expect(await outputOf(id)).toBe(7);
  });

  test('a look that writes nothing would miss it: what the mailbox is for', async () => {
    // The naive form: look for a signal, and park without one. Between the two a sender finds nobody waiting.
    const [receiver, sender] = await database.connect(2);
    if (receiver === undefined || sender === undefined) throw new Error('no connection');
    await database.client`create table naive (job int, value int, waiting boolean)`;
    await database.client`insert into naive values (1, null, false)`;
    const [seen] = await receiver.client`select value from naive where job = 1`;
    const woken = await sender.client`
      update naive set value = 7 where job = 1 returning waiting`;
    await receiver.client`update naive set waiting = true where job = 1 and ${seen?.value ?? null}::int is null`;
    const [left] = await database.client`select value, waiting from naive`;
    // It waits for what is there already, and nobody was told to wake it.
    expect([woken[0]?.waiting, left]).toEqual([false, { value: 7, waiting: true }]);
    await database.client`drop table naive`;
  });

  test('of which a job waits for two side by side: each is received once, in the order of the waits', async () => {
    let sent = false;
    await start(async ({ step, job }) => {
      const later = async () => {
        await step.run('both are there', async () => {
          await until(async () => (await queue.workflows.mailboxes(database.db, job.id)).length > 0);
          await send(job.id, 1);
          await send(job.id, 2);
          sent = true;
        });
        return await step.waitForSignal(answer, { name: 'second' });
      };
      return await Promise.all([step.waitForSignal(answer, { name: 'first' }), later()]);
    });
    expect(await outputOf(await enqueue())).toEqual([1, 2]);
    expect(sent).toBe(true);
  });

  test('many senders, and jobs that wait as often: each signal is received once, in order', async () => {
    const SIGNALS = 5;
    await start(async ({ step }) => {
      const got: number[] = [];
      for (let at = 0; at < SIGNALS; at++) got.push(await step.waitForSignal(answer, { name: `${at}` }));
      return got;
    });
    const ids = await Promise.all(Array.from({ length: 20 }, enqueue));
    await Promise.all(
      ids.map(async (id) => {
        for (let at = 0; at < SIGNALS; at++) {
          await database.db.transaction(async (tx) => {
            await queue.workflows.signal(tx, { id }, answer, at);
            // What else a sender does in its transaction.
            await tx.execute('select 1');
          });
        }
      }),
    );
    const outputs = await Promise.all(ids.map(outputOf));
    expect(outputs).toEqual(ids.map(() => [0, 1, 2, 3, 4]));
  }, 120_000);

  test('whose timeout is over at that moment: one of the two is the end of the wait, in each later run', async () => {
    const seen: (number | undefined)[][] = [];
    await start(async ({ step, payload }) => {
      const first = await step.waitForSignal(answer, { timeoutMs: 20 });
      seen[payload] = [...(seen[payload] ?? []), first];
      await step.sleep('a moment', 1);
      return first ?? 'late';
    });
    const ids = await Promise.all(
      Array.from({ length: 30 }, async (_, n) => (await queue.enqueue(database.db, work, n)).id),
    );
    await Promise.all(ids.map((id) => send(id, 7)));
    await Promise.all(ids.map(outputOf));
    // A run that has seen a value never becomes one that is late, nor the other way round.
    for (const values of seen) expect(new Set(values).size).toBe(1);
  }, 120_000);
});

describe('a signal', () => {
  test('of a transaction that rolls back is none', async () => {
    const id = await enqueue();
    await database.db
      .transaction(async (tx) => {
        await queue.workflows.signal(tx, { id }, answer, 7);
        throw new Error('no');
      })
      .catch(() => undefined);
    await send(id, 8);
    await start(async ({ step }) => await step.waitForSignal(answer));
    expect(await outputOf(id)).toBe(8);
  });

  test('finds its job by the unique key', async () => {
    await start(async ({ step }) => await step.waitForSignal(answer));
    const { id } = await queue.enqueue(database.db, work, 1, { uniqueKey: 'order-1' });
    const to = { job: work, uniqueKey: 'order-1' };
    expect(await queue.workflows.signal(database.db, to, answer, 7)).toBe('sent');
    expect(await outputOf(id)).toBe(7);
    expect(await queue.workflows.signal(database.db, to, answer, 7)).toBe('gone');
  });

  test('with a key is sent once, however often', async () => {
    const id = await enqueue();
    const sent = await Promise.all(Array.from({ length: 5 }, () => send(id, 7, 'webhook-1')));
    expect(sent.sort()).toEqual(['duplicate', 'duplicate', 'duplicate', 'duplicate', 'sent']);
    expect(await send(id, 8, 'webhook-2')).toBe('sent');
    expect(await send(id, 8, 'webhook-2')).toBe('duplicate');
    await start(async ({ step }) => [
      await step.waitForSignal(answer),
      await step.waitForSignal(answer, { name: 'second' }),
    ]);
    expect(await outputOf(id)).toEqual([7, 8]);
    await queue.workflows.signal(database.db, { id }, answer, 9, { key: 'webhook-2' });
  });

  test('without a schema has no value', async () => {
    const id = await enqueue();
    await queue.workflows.signal(database.db, { id }, bare);
    await start(async ({ step }) => ({ got: await step.waitForSignal(bare) }));
    expect(await outputOf(id)).toEqual({ got: null });
  });

  test('for a job of another kind, or that is not there, is gone', async () => {
    const id = await enqueue();
    const other = defineJob('other');
    expect(await queue.workflows.signal(database.db, { id, job: other }, answer, 7)).toBe('gone');
    expect(await queue.workflows.signal(database.db, { id: id + 1_000 }, answer, 7)).toBe('gone');
  });

  test('is refused when a schema refuses it, JSON cannot hold it, or it is larger than 64 kB', async () => {
    const id = await enqueue();
    const checked = defineSignal('checked', z.object({ ok: z.boolean() }));
    const bad = { ok: 'yes' } as unknown as { ok: boolean };
    await expect(queue.workflows.signal(database.db, { id }, checked, bad)).rejects.toThrow(
      InvalidSignalError,
    );
    await expect(send(id, Number.NaN)).rejects.toThrow(InvalidSignalError);
    const text = defineSignal('text', z.string());
    const large = queue.workflows.signal(database.db, { id }, text, 'x'.repeat(65_536));
    await expect(large).rejects.toThrow('64 kB is the most');
    await expect(queue.workflows.signal(database.db, { id }, text, '\0')).rejects.toThrow(InvalidSignalError);
  });

  test('wakes a job once, if it waits no longer for it, however many come', async () => {
    let runs = 0;
    const run: Run = async ({ step }) => {
      runs++;
      const early = await step.waitForSignal(answer, { timeoutMs: 0 });
      await step.sleep('long', 3_600_000);
      return [early ?? null, await step.waitForSignal(answer, { name: 'later' })];
    };
    const drained = () =>
      drain(database.db, { queue, handlers: [handle(work, run)], log: false, deadlineMs: 60_000 });
    const id = await enqueue();
    await drained();
    expect(runs).toBe(2);
    for (const value of [1, 2, 3]) {
      await send(id, value);
      await drained();
    }
    expect(runs).toBe(3);
    await database.client`update queue_steps set until = now() where name = 'long'`;
    await database.client`update queue_jobs set run_at = now()`;
    await drained();
    expect(await outputOf(id)).toEqual([null, 1]);
  });

  test('is counted in its mailbox: sent, received, and waited for', async () => {
    const id = await enqueue();
    const mailboxes = () => queue.workflows.mailboxes(database.db, id);
    expect(await mailboxes()).toEqual([]);
    for (const value of [1, 2]) await send(id, value);
    const updatedAt = expect.any(Date);
    expect(await mailboxes()).toEqual([
      { signal: 'answer', sent: 2, received: 0, waiting: false, updatedAt },
    ]);
    await start(async ({ step }) => {
      for (const name of ['one', 'two', 'three']) await step.waitForSignal(answer, { name });
    });
    await until(async () => (await mailboxes())[0]?.waiting === true);
    expect(await mailboxes()).toEqual([{ signal: 'answer', sent: 2, received: 2, waiting: true, updatedAt }]);
  });

  test('is refused once 1,000 were not received', async () => {
    const id = await enqueue();
    await database.client`
      insert into queue_mailboxes (job_id, queue, name, sent)
      select ${id}, 'q', 'answer', jsonb_agg(jsonb_build_object('id', n::text, 'value', n))
      from generate_series(1, 1000) as n`;
    await expect(send(id, 1)).rejects.toThrow(MailboxFullError);
    expect(await send(id, 1).catch((error: Error) => error.message)).toContain(
      `Job ${id} takes no more signals`,
    );
  });

  test.each([
    ['an id', { id: 0 }, answer],
    ['a unique key', { job: work, uniqueKey: '' }, answer],
    ['a signal', { id: 1 }, { name: '' }],
  ])('to %s that is none is refused before anything is sent', async (_, to, signal) => {
    const sent = queue.workflows.signal(database.db, to as { id: number }, signal as typeof answer, 1);
    await expect(sent).rejects.toThrow(TypeError);
  });
});

import {
  createQueue,
  defineJob,
  defineSignal,
  fixedBackoff,
  handlersFor,
  runNext,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { foldTallies } from '../../src/features/batches/queries/fold-tallies.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { gate } from '../support/gate.ts';
import { runningMsUntil } from '../support/running-time.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { blocked as blockedIn } from './fixtures/open-transactions.ts';

/** `runNext` holds the lock of its job for as long as the handler runs; others lock mailboxes and batches before jobs. */

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
const child = defineJob('child', { queue: 'q', payload: unvalidated<number>(), backoff: fixedBackoff(0) });
const answer = defineSignal('answer', unvalidated<number>());

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});
afterEach(() => atFaultPoints());

type Run = Parameters<typeof handle<typeof work>>[1];

const enqueue = async () => (await queue.enqueue(database.db, work, 1)).id;
const blocked = <T>(statement: Promise<T>) => blockedIn(database, statement);
const next = (run: Run, id?: number) =>
  runNext(database.db, { queue, id, handlers: [handle(work, run), handle(child, () => undefined)] });

/** What ends meanwhile is not counted, as when the process dies that has run it. */
const uncounted = (run: () => Promise<void>) =>
  database.client.begin(async (tx) => {
    await tx`select from queue_batches for update`;
    await run();
  });

describe('the attempt of a job for which another transaction', () => {
  test('has sent a signal, which it waits for: it is called again, and neither is a deadlock', async () => {
    const run: Run = async ({ step }) => await step.waitForSignal(answer);
    const id = await enqueue();
    expect(await next(run)).toMatchObject({ outcome: 'waiting' });
    await database.client`update queue_jobs set run_at = now()`;
    const sent = gate();
    const goesOn = gate();
    atFaultPoints(async (at) => {
      if (at !== 'signal: sent') return;
      sent.open();
      await goesOn.opened;
    });
    const sending = queue.workflows.signal(database.db, { id }, answer, 5);
    await sent.opened;
    expect(await next(run)).toMatchObject({ outcome: 'waiting' });
    goesOn.open();
    expect(await sending).toBe('sent');
    expect(await next(run)).toMatchObject({ outcome: 'completed' });
    expect(await queue.find(database.db, id)).toMatchObject({ output: 5, attempt: 1, errors: [] });
  });

  test('counts its children: it is called again', async () => {
    const holds = gate();
    const goesOn = gate();
    let calls = 0;
    const run: Run = async ({ step }) => {
      const one = await step.enqueue('one', child, 1);
      if (++calls === 2) {
        holds.open();
        await goesOn.opened;
        await step.allEnded('a step that has not waited', [one]);
      }
      await step.waitForJob(one);
    };
    const id = await enqueue();
    expect(await next(run)).toMatchObject({ outcome: 'waiting' });
    let ran: ReturnType<typeof next> | undefined;
    await uncounted(async () => {
      expect(await next(run)).toMatchObject({ job: { kind: 'child' }, outcome: 'completed' });
      await database.client`update queue_jobs set run_at = now()`;
      ran = next(run);
      await holds.opened;
    });
    let folding: ReturnType<typeof foldTallies> | undefined;
    await database.db.transaction(async (tx) => {
      folding = (await blocked(foldTallies(tx, all, { channel: undefined, locks: 'wait' }))).answer;
      goesOn.open();
      await folding;
    });
    expect(await ran).toMatchObject({ outcome: 'waiting' });
    expect(await next(run)).toMatchObject({ outcome: 'completed' });
    expect(await queue.find(database.db, id)).toMatchObject({ attempt: 1, errors: [] });
  });

  test('redrives the flow that it adds to: neither waits for the other', async () => {
    const { db } = database;
    const holds = gate();
    const goesOn = gate();
    const run: Run = async ({ step, payload }) => {
      if (payload === 0) throw new Error('no');
      holds.open();
      await goesOn.opened;
      await step.addToFlow('more', work, []);
    };
    const { id, jobIds } = await queue.workflows.enqueueFlow(db, (flow) => {
      const before = flow.add(work, 0, { maxAttempts: 1 });
      flow.add(work, 1, { after: [before], onFailure: 'run' });
    });
    const [, second] = jobIds;
    expect(await next(run)).toMatchObject({ outcome: 'failed' });
    await foldTallies(db, all, { channel: undefined, locks: 'briefly' });
    const ran = next(run, second);
    await holds.opened;
    const { answer: redriven } = await blocked(queue.workflows.redriveFlow(db, id));
    goesOn.open();
    expect(await Promise.all([redriven, ran])).toMatchObject([1, { outcome: 'completed' }]);
  });
});

describe('when nothing is due', () => {
  /** Jobs that wait for what has just ended, one each. */
  async function waiters(count: number): Promise<readonly number[]> {
    const ids: number[] = [];
    for (let n = 0; n < count; n++) {
      const { jobIds } = await queue.workflows.enqueueFlow(database.db, (flow) => {
        flow.add(work, 2, { after: [flow.add(work, 1)] });
      });
      ids.push(Number(jobIds[1]));
    }
    await uncounted(async () => {
      for (let n = 0; n < count; n++) expect(await next(() => 1)).toMatchObject({ outcome: 'completed' });
    });
    return ids;
  }

  test('it waits for no other transaction, and others go on', async () => {
    const [first, second] = await waiters(2);
    await database.client.begin(async (tx) => {
      await tx`select from queue_jobs where id = ${Number(first)} for update`;
      expect(await next(() => 1)).toMatchObject({ job: { id: second } });
      expect(await next(() => 1)).toBeUndefined();
    });
    expect(await next(() => 1)).toMatchObject({ job: { id: first } });
  });

  test('it waits a moment for many that are locked, and not as long for each', async () => {
    const ids = await waiters(50);
    const last = ids.at(-1);
    await database.client.begin(async (tx) => {
      await tx`select from queue_jobs where id = any(${ids.slice(0, -1)}) for update`;
      const ran = next(() => 1);
      // A wait for each of them, of 100 ms, took 5 seconds.
      expect(await runningMsUntil(ran)).toBeLessThan(2_500);
      expect(await ran).toMatchObject({ job: { id: last } });
      expect(await next(() => 1)).toBeUndefined();
    });
    expect(await next(() => 1)).toMatchObject({ job: { id: ids[0] } });
  });

  test('a job whose row refuses to be made due keeps back no other, and is no error of the others', async () => {
    const { client } = database;
    const [first, second] = await waiters(2);
    await client.unsafe(
      `alter table queue_jobs add constraint refused check (id <> ${first} or blockers > 0)`,
    );
    const drop = async () => void (await client`alter table queue_jobs drop constraint if exists refused`);
    onTestFinished(drop);
    expect(await next(() => 1)).toMatchObject({ job: { id: second } });
    expect(await next(() => 1)).toBeUndefined();
    await drop();
    expect(await next(() => 1)).toMatchObject({ job: { id: first } });
  });
});

describe('a job that waits for one that has ended before its time was over', () => {
  const run: Run = async ({ step }) => {
    const one = await step.enqueue('one', child, 1);
    return (await step.first('which', { one, late: { delayMs: 3_600_000 } })).key;
  };
  const timePasses = async () => {
    const { client } = database;
    await client`update queue_steps set until = now() where until is not null`;
    await client`update queue_jobs set run_at = now() where run_at > now()`;
  };
  const endsFirst = async () => expect(await next(run)).toMatchObject({ job: { kind: 'child' } });

  test.each([
    ['counted', endsFirst],
    ['not counted, since its process has died', () => uncounted(endsFirst)],
  ])('goes on with it, where its end was %s', async (_, ends) => {
    const id = await enqueue();
    expect(await next(run)).toMatchObject({ outcome: 'waiting' });
    await ends();
    await timePasses();
    expect(await next(run, id)).toMatchObject({ outcome: 'completed' });
    expect(await queue.find(database.db, id)).toMatchObject({ output: 'one' });
  });

  test('goes on without it, where it has not ended', async () => {
    const id = await enqueue();
    expect(await next(run)).toMatchObject({ outcome: 'waiting' });
    await timePasses();
    expect(await next(run, id)).toMatchObject({ outcome: 'completed' });
    expect(await queue.find(database.db, id)).toMatchObject({ output: 'late' });
  });
});

describe('what waits for a job does not stand behind all that is due', () => {
  test('where its job has just run', async () => {
    const { jobIds } = await queue.workflows.enqueueFlow(database.db, (flow) => {
      const before = flow.add(work, 1, { priority: 0 });
      flow.add(work, 2, { after: [before], priority: 0 });
    });
    const others = [await enqueue(), await enqueue()];
    const ran: (number | undefined)[] = [];
    for (let n = 0; n < 4; n++) ran.push((await next(() => 1))?.job.id);
    expect(ran).toEqual([...jobIds, ...others]);
  });

  test('where it ran itself as that ended', async () => {
    const { client, db } = database;
    const holds = gate();
    const goesOn = gate();
    let calls = 0;
    const run: Run = async ({ step }) => {
      const one = await step.enqueue('one', child, 1);
      if (++calls === 2) {
        holds.open();
        await goesOn.opened;
      }
      await step.first('which', { answer, one });
    };
    const { id } = await queue.enqueue(db, work, 1, { priority: 0 });
    expect(await next(run)).toMatchObject({ outcome: 'waiting' });
    await client`update queue_jobs set run_at = now() where id = ${id}`;
    const ran = next(run, id);
    await holds.opened;
    expect(await next(run)).toMatchObject({ job: { kind: 'child' }, outcome: 'completed' });
    await enqueue();
    goesOn.open();
    expect(await ran).toMatchObject({ outcome: 'waiting' });
    expect(await next(run)).toMatchObject({ job: { id }, outcome: 'completed' });
  });
});

test('the end of a job is counted, and not all that others have left', async () => {
  const enqueueFlow = async () =>
    await queue.workflows.enqueueFlow(database.db, (flow) => {
      flow.add(work, 2, { after: [flow.add(work, 1)] });
    });
  const [, left] = (await enqueueFlow()).jobIds;
  await uncounted(async () => void (await next(() => 1)));
  const { jobIds } = await enqueueFlow();
  for (const id of jobIds) expect(await next(() => 1)).toMatchObject({ job: { id } });
  // The call that finds nothing due counts the others.
  expect(await next(() => 1)).toMatchObject({ job: { id: left } });
});

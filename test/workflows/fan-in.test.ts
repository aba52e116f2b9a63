import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import {
  createQueue,
  createWorker,
  defineJob,
  fixedBackoff,
  handlersFor,
  NonRetryableError,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import pg from 'pg';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { claimJobs } from '../../src/core/queries/claim/claim-jobs.ts';
import { registerWorker } from '../../src/core/queries/presence/register-worker.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { foldTallies } from '../../src/features/batches/queries/fold-tallies.ts';
import { claimOf, clearTables, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ max: 20 });
const queue = createQueue({ tables, workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const { handle: handlePooled } = handlersFor<ReturnType<typeof drizzle>, typeof queue>();
const parent = defineJob('parent', {
  queue: 'parents',
  output: unvalidated<unknown>(),
  backoff: fixedBackoff(0),
  maxAttempts: 10_000,
});
const child = defineJob('child', {
  queue: 'children',
  payload: unvalidated<number>(),
  output: unvalidated<number>(),
  backoff: fixedBackoff(0),
});
/** A job of a flow with many layers. */
const node = defineJob('node', {
  queue: 'nodes',
  payload: unvalidated<{ readonly after: number; readonly fails: boolean }>(),
  output: unvalidated<unknown>(),
  backoff: fixedBackoff(0),
  maxAttempts: 10_000,
});
const batchTables = { ...tables, ...workflowTables };

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});
afterEach(() => atFaultPoints());

/** The nodes whose handlers were called, and those called before all that they come after had ended. */
const ran = new Set<number>();
const early = new Set<number>();

/** On node-postgres: postgres.js may throw an error that nothing can catch when its connection is killed. */
async function startWorkers(count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const pool = new pg.Pool({ connectionString: database.url, max: 5, application_name: 'workers' });
    pool.on('error', () => {});
    // A connection that is killed between two statements of a transaction.
    pool.on('connect', (client) => client.on('error', () => {}));
    onTestFinished(() => pool.end());
    const worker = createWorker(drizzle({ client: pool }), {
      queue,
      handlers: [
        handlePooled(child, async ({ payload }) => {
          if (payload % 20 === 13) throw new NonRetryableError('thirteen');
          return payload;
        }),
        handlePooled(node, async ({ job, payload, step }) => {
          ran.add(job.id);
          const { total, completed, failed } = await step.parentCounts();
          if (completed + failed !== payload.after || total !== payload.after) early.add(job.id);
          if (payload.fails) throw new NonRetryableError('it fails');
        }),
        handlePooled(parent, async ({ step }) => {
          const entries = Array.from({ length: 60 }, (_, one) => ({ payload: one }));
          const ends = await step.allEnded('ends', await step.enqueueMany('all', child, entries));
          return ends.map((end) => (end.state === 'completed' ? end.output : end.state)).join();
        }),
      ],
      queues: { parents: { concurrency: 10 }, children: { concurrency: 7 }, nodes: { concurrency: 10 } },
      log: false,
    });
    // Its connections are killed: what it says of that is no news.
    worker.on('error', () => {});
    onTestFinished(() => worker.stop());
    await worker.start();
  }
}

const expected = Array.from({ length: 60 }, (_, one) => (one % 20 === 13 ? 'discarded' : one)).join();

/** Kills a connection of the workers at every fifth fault point; returns how many. */
function killConnections(most: number): { readonly killed: number } {
  const kills = { killed: 0 };
  let passed = 0;
  atFaultPoints(async () => {
    if (++passed % 5 > 0 || kills.killed >= most) return;
    kills.killed++;
    await database.client`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'workers' order by random() limit 1`;
  });
  return kills;
}

test('no parent misses the end of its children in several workers with killed connections', async () => {
  await startWorkers(4);
  const ids = (
    await queue.enqueueMany(
      database.db,
      parent,
      Array.from({ length: 40 }, () => ({})),
    )
  ).map(({ id }) => id);
  const kills = killConnections(60);
  for (const id of ids) {
    const record = await queue.waitFor(database.db, parent, id, { timeoutMs: 100_000 });
    expect(record).toMatchObject({ state: 'completed', output: expected });
  }
  expect(kills.killed).toBeGreaterThan(10);
  const [row] = await database.client`
    select (select count(*)::int from queue_results where kind = 'child') as children,
      (select count(*)::int from queue_batches where ended_at is null) as open,
      (select count(*)::int from queue_batches where failed <> 3 or pending <> 0) as wrong`;
  expect(row).toEqual({ children: 2_400, open: 0, wrong: 0 });
});

test('a flow of many layers with jobs that fail and are cancelled goes on as each of its waits says', async () => {
  await startWorkers(4);
  const [LAYERS, WIDTH] = [8, 60];
  const places = Array.from({ length: LAYERS * WIDTH }, (_, at) => at);
  const randomOf = (n: number) => Math.floor(Math.random() * n);
  const nodes = places.map((at) => {
    const layer = Math.floor(at / WIDTH);
    const before = Array.from({ length: 1 + randomOf(3) }, () => (layer - 1) * WIDTH + randomOf(WIDTH));
    return {
      after: layer === 0 ? [] : [...new Set(before)],
      onFailure: Math.random() < 0.6 ? ('run' as const) : ('cancel' as const),
      fails: Math.random() < 0.03,
    };
  });
  const { id, jobIds } = await queue.workflows.enqueueFlow(database.db, (flow) => {
    const added: ReturnType<typeof flow.add>[] = [];
    for (const { after, onFailure, fails } of nodes) {
      const parents = after.flatMap((at) => added[at] ?? []);
      const waits = parents.length === 0 ? {} : { after: parents, onFailure };
      added.push(flow.add(node, { after: parents.length, fails }, waits));
    }
  });
  const kills = killConnections(60);
  const cancelled = new Set<number>();
  await until(async () => {
    const left = await database.client`select id::int from queue_jobs order by random() limit 2`;
    for (const row of cancelled.size < 30 ? left : []) {
      const answer = await queue.cancel(database.db, row.id);
      if (answer.cancelled) cancelled.add(row.id);
    }
    return left.length === 0;
  });
  expect(kills.killed).toBeGreaterThan(10);
  const results = await database.client<{ id: number; state: string }[]>`
    select job_id::int as id, state from queue_results`;
  expect(results).toHaveLength(nodes.length);
  const states = new Map(results.map((row) => [row.id, row.state]));
  expect([...early]).toEqual([]);
  for (const [at, { after, onFailure, fails }] of nodes.entries()) {
    const jobId = Number(jobIds[at]);
    const isForbidden =
      onFailure === 'cancel' && after.some((before) => states.get(Number(jobIds[before])) !== 'completed');
    const expected = isForbidden ? ['cancelled', false] : [fails ? 'discarded' : 'completed', true];
    // One that was cancelled by itself may have run until then.
    const had = cancelled.has(jobId) && !isForbidden ? expected : [states.get(jobId), ran.has(jobId)];
    expect(had, `job ${jobId}, ${onFailure} after ${after.map((before) => jobIds[before])}`).toEqual(
      expected,
    );
  }
  const flow = await queue.workflows.flow(database.db, id);
  const failed = results.filter(({ state }) => state !== 'completed').length;
  expect(flow).toMatchObject({ total: nodes.length, pending: 0, failed });
  const left = await database.client`select from queue_batches where ended_at is null or pending <> 0`;
  expect(left).toHaveLength(0);
}, 120_000);

test('a worker that is killed between the end of the last child and its count: another one counts it', async () => {
  const { id, children } = await waitingParent();
  const errors: unknown[] = [];
  // It has no handler for children, and hears of none: a poll alone finds the tallies.
  const idle = createWorker(database.db, {
    queue,
    handlers: [handle(parent, ({ step }) => step.all('outputs', []))],
    listen: false,
    log: false,
  });
  idle.on('error', ({ error }) => errors.push(error));
  onTestFinished(() => idle.stop());
  await idle.start();
  const { statementTables } = queue.workflows;
  const workerId = await registerWorker(database.db, tables, { name: 'killed', queues: ['children'] });
  const holder = { queue: 'children', workerId };
  const claim = claimOf({ queue: 'children', kinds: ['child'], workerId, limit: 2 });
  const claimed = await claimJobs(database.db, statementTables, claim);
  expect(claimed.map((job) => job.id)).toEqual(children);
  const finish = {
    type: 'finish',
    state: 'completed',
    output: '1',
    error: null,
    keepResult: true,
  } as const;
  const ends = claimed.map((job) => ({ id: job.id, fence: job.fence, transition: finish }));
  // The process dies after this statement.
  expect((await finishJobs(database.db, statementTables, holder, ends)).size).toBe(2);
  await until(async () => (await queue.find(database.db, id))?.state !== 'waiting', { timeoutMs: 20_000 });
  const [batch] = await database.client`select pending::int, ended_at is not null as over from queue_batches`;
  expect([batch, errors]).toEqual([{ pending: 0, over: true }, []]);
});

/** A parent that waits for two children, none of which has run. */
async function waitingParent(): Promise<{ id: number; children: readonly number[] }> {
  const worker = createWorker(database.db, {
    queue,
    handlers: [
      handle(parent, async ({ step }) => {
        const all = await step.enqueueMany('all', child, [{ payload: 1 }, { payload: 2 }]);
        return await step.all('outputs', all);
      }),
    ],
    log: false,
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  const { id } = await queue.enqueue(database.db, parent);
  await until(async () => (await queue.find(database.db, id))?.state === 'waiting');
  await worker.stop();
  const [enqueued] = await queue.workflows.steps(database.db, id);
  return { id, children: (enqueued?.output as { ids: number[] } | undefined)?.ids ?? [] };
}

describe('two connections', () => {
  test('that end the last two members at once: the second to be counted makes the parent due', async () => {
    const { id, children } = await waitingParent();
    let commit = () => {};
    const held = new Promise<void>((resolve) => {
      commit = resolve;
    });
    const [one, two] = children;
    let ended = () => {};
    const both = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const first = database.db.transaction(async (tx) => {
      await queue.cancel(tx, Number(one), 'first');
      ended();
      await held;
    });
    await both;
    // Neither sees the other: each has its own snapshot, and both only add a tally.
    await queue.cancel(database.db, Number(two), 'second');
    const fold = () => foldTallies(database.db, batchTables, { channel: undefined, locks: 'briefly' });
    expect(await fold()).toMatchObject({ tallies: 1, woken: ['parents'] });
    commit();
    await first;
    expect(await fold()).toMatchObject({ tallies: 1 });
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due' });
  });

  test('of which one folds a batch: the other leaves it, and says so', async () => {
    const { children } = await waitingParent();
    await queue.cancel(database.db, Number(children[0]), 'ended');
    const [batch] = await database.client`select id::int from queue_batches`;
    await database.db.transaction(async (tx) => {
      const folding = { channel: undefined, locks: 'briefly' } as const;
      expect(await foldTallies(tx, batchTables, folding)).toMatchObject({ tallies: 1, busy: [] });
      await queue.cancel(database.db, Number(children[1]), 'ended');
      expect(await foldTallies(database.db, batchTables, folding)).toMatchObject({
        tallies: 0,
        busy: [batch?.id],
      });
    });
    const last = await foldTallies(database.db, batchTables, { channel: undefined, locks: 'briefly' });
    expect(last).toMatchObject({ tallies: 1, busy: [] });
  });

  test('a naive look whether a member is left misses the last two that end at once', async () => {
    const { children } = await waitingParent();
    const [one, two] = children.map(Number);
    const isLast = async (tx: Parameters<typeof queue.cancel>[0]) => {
      const rows = await tx.execute(sql`select 1 from queue_jobs where batch_id is not null`);
      return (rows as unknown as unknown[]).length === 0;
    };
    let sawTwo = true;
    const sawOne = await database.db.transaction(
      async (tx) => {
        await queue.cancel(tx, Number(one), 'first');
        await database.db.transaction(async (other) => {
          await queue.cancel(other, Number(two), 'second');
          sawTwo = await isLast(other);
        });
        return await isLast(tx);
      },
      { isolationLevel: 'repeatable read' },
    );
    expect([sawOne, sawTwo]).toEqual([false, false]);
  });
});

describe('a parent that cannot be made due', () => {
  /** Two parents whose children have ended, while something keeps the row of the first from changing. */
  async function endBoth(): Promise<readonly [kept: number, other: number]> {
    const [kept, other] = [await waitingParent(), await waitingParent()];
    return [kept.id, other.id];
  }

  test('because its row is locked holds up no other', async () => {
    const [kept, other] = await endBoth();
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    onTestFinished(release);
    const locking = new Promise<void>((resolve, reject) => {
      database.db
        .transaction(async (tx) => {
          await tx.execute(sql`select from queue_jobs where id = ${kept} for no key update`);
          resolve();
          await held;
        })
        .catch(reject);
    });
    await locking;
    await startWorkers(1);
    const ended = async (id: number) => await queue.waitFor(database.db, parent, id, { timeoutMs: 60_000 });
    expect(await ended(other)).toMatchObject({ state: 'completed', output: '1,2' });
    release();
    expect(await ended(kept)).toMatchObject({ state: 'completed', output: '1,2' });
  });

  test('because its row refuses the change, and others wait for the same: these go on, and it is named', async () => {
    const { jobIds } = await queue.workflows.enqueueFlow(database.db, (flow) => {
      const one = flow.add(child, 1);
      for (const payload of [2, 3, 4, 5]) flow.add(child, payload, { after: [one] });
    });
    const [first, ...after] = jobIds.map(Number);
    const refused = Number(after[2]);
    await database.client.unsafe(`alter table queue_jobs add constraint refused
      check (id <> ${refused} or blockers > 0)`);
    const drop = 'alter table queue_jobs drop constraint if exists refused';
    onTestFinished(async () => void (await database.client.unsafe(drop)));
    const errors: string[] = [];
    const worker = createWorker(database.db, {
      queue,
      handlers: [handle(child, ({ payload }) => payload)],
      log: false,
    });
    worker.on('error', ({ error }) => errors.push(String(error)));
    onTestFinished(() => worker.stop());
    await worker.start();
    const others = [first, ...after].filter((id) => id !== refused);
    for (const id of others) {
      const ended = await queue.waitFor(database.db, child, Number(id), { timeoutMs: 60_000 });
      expect(ended.state).toBe('completed');
    }
    expect((await queue.find(database.db, refused))?.state).toBe('waiting');
    await until(async () =>
      errors.some((error) => error.includes(`Job ${refused} of 'children' cannot be made due`)),
    );
    await database.client.unsafe(drop);
    const ended = await queue.waitFor(database.db, child, refused, { timeoutMs: 60_000 });
    expect(ended.state).toBe('completed');
  });

  test('because its row refuses the change holds up no other', async () => {
    const [kept, other] = await endBoth();
    await database.client.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
      create trigger refuse before update on queue_jobs for each row when (old.id = ${kept})
        execute function refuse()`);
    const drop = 'drop trigger if exists refuse on queue_jobs; drop function if exists refuse()';
    onTestFinished(async () => void (await database.client.unsafe(drop)));
    await startWorkers(1);
    const ended = async (id: number) => await queue.waitFor(database.db, parent, id, { timeoutMs: 60_000 });
    expect(await ended(other)).toMatchObject({ state: 'completed', output: '1,2' });
    await database.client.unsafe(drop);
    expect(await ended(kept)).toMatchObject({ state: 'completed', output: '1,2' });
  });
});

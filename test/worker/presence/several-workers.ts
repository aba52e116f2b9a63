import { drizzle } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, type Database, defineJob, handle, type Worker } from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { UsedTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';
import { useSettledDatabase } from './settled-database.ts';

/*
 * Several workers over one `db`. On postgres.js they share one connection for their sessions, and a backend's own advisory
 * locks look free to itself; on node-postgres each has a connection of its own.
 */

/** That of the test file that has called {@link useSharedDatabase} last: files follow each other in one process. */
let database: UsedTestDatabase;
const queue = createQueue();
const held = defineJob('held', { maxAttempts: 3 });
/** As many wait for each other's connections to take their locks anew, on a busy machine a second and more. */
const RECONNECT_MS = 5_000;

/** Gives a test file its database. */
export function useSharedDatabase(): void {
  database = useSettledDatabase();
}

type Driver = 'postgres.js' | 'node-postgres, a pool';

const open: Readonly<Record<Driver, () => Promise<{ db: Database; client?: postgres.Sql }>>> = {
  'postgres.js': async () => {
    const client = postgres(database.url, { max: 4, fetch_types: false, onnotice: () => {} });
    onTestFinished(() => client.end({ timeout: 1 }));
    return { db: drizzlePostgresJs({ client }), client };
  },
  'node-postgres, a pool': async () => {
    const pool = new pg.Pool({ connectionString: database.url, max: 4 });
    pool.on('error', () => {});
    onTestFinished(() => pool.end());
    return { db: drizzle({ client: pool }) as unknown as Database };
  },
};

interface Running {
  readonly worker: Worker;
  readonly id: number;
}

/** Workers over one `db`, each of which runs one job that lasts until `open` is called. */
async function startWorkers(db: Database, count: number) {
  const events: string[] = [];
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const workers = await Promise.all(
    Array.from({ length: count }, async (): Promise<Running> => {
      const worker = createWorker(db, {
        queue,
        queues: { default: { concurrency: 1 } },
        reconnectMs: RECONNECT_MS,
        shutdownTimeoutMs: 0,
        handlers: [handle(held, () => opened)],
      });
      onTestFinished(() => worker.stop());
      worker.on('gone', ({ workerId }) => events.push(`gone ${workerId}`));
      worker.on('lost', ({ job }) => events.push(`lost ${job.id}`));
      worker.on('failed', ({ job }) => events.push(`failed ${job.id}`));
      worker.on('error', () => {});
      const started = nextEvent(worker, 'started');
      await worker.start();
      const [{ workerId: id }] = await started;
      return { worker, id };
    }),
  );
  return { workers, events, open };
}

/** How often each worker has beaten is seen by how often its row changes. */
async function untilAllSeen(count: number, times: number): Promise<void> {
  const changes = new Map<number, Set<string>>();
  await until(
    async () => {
      const rows = await database.client<{ id: number; seen: string }[]>`
        select id::int, seen_at::text as seen from queue_workers`;
      for (const { id, seen } of rows) changes.set(id, (changes.get(id) ?? new Set()).add(seen));
      return [...changes.values()].filter((seen) => seen.size > times).length >= count;
    },
    { timeoutMs: 40_000 },
  );
}

/** The connections that hold session locks, with how many each. */
async function sessions(): Promise<ReadonlyMap<number, number>> {
  const rows = await database.client<{ pid: number; locks: number }[]>`
    select l.pid, count(*)::int as locks from pg_locks as l join pg_database as d on d.oid = l.database
    where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and d.datname = current_database() group by l.pid`;
  return new Map(rows.map(({ pid, locks }) => [pid, locks]));
}

async function lockCount(): Promise<number> {
  return [...(await sessions()).values()].reduce((sum, locks) => sum + locks, 0);
}

/** The workers whose row names a connection that holds a session lock. */
async function shown(): Promise<number> {
  const rows = await database.client<{ session: number | null }[]>`select session from queue_workers`;
  const held = await sessions();
  return rows.filter(({ session }) => session !== null && held.has(session)).length;
}

/** Ends the connections, and waits until they are over. */
async function terminate(pids: Iterable<number>): Promise<void> {
  for (const pid of pids) await database.client`select pg_terminate_backend(${pid}, 10000)`;
}

/** Declares the tests of so many workers over one `db`, on each of these drivers that hold sessions. */
export function severalWorkers(counts: readonly number[], drivers: readonly Driver[]): void {
  describe.each(drivers)('%s', (name) => {
    test.each(counts)(
      '%i workers over one db do not declare each other gone',
      { timeout: 120_000 },
      async (count) => {
        const { db } = await open[name]();
        const { workers, events, open: finish } = await startWorkers(db, count);
        await queue.enqueueMany(db, held, new Array(count).fill({}));
        await until(
          async () => (await database.client`select from queue_jobs where worker_id is null`).length === 0,
        );
        expect((await sessions()).size).toBe(name === 'postgres.js' ? 1 : count);
        expect(await shown()).toBe(count);
        // Longer than any limit: a check every 1.5 seconds, a beat every 4.5, and `reconnectMs`.
        await untilAllSeen(count, 2);
        expect(events).toEqual([]);

        // One of them goes: its lock is given back, and nobody else loses anything.
        const [first, ...others] = workers;
        await first?.worker.stop();
        await until(async () => (await lockCount()) === others.length);
        await untilAllSeen(others.length, 2);
        expect(events).toEqual([]);

        // The connections die: every worker has its session again.
        const before = new Set((await sessions()).keys());
        const startMs = performance.now();
        await terminate(before);
        await until(async () => (await shown()) === others.length);
        expect(performance.now() - startMs).toBeLessThan(10_000);
        expect([...(await sessions()).keys()].filter((pid) => before.has(pid))).toEqual([]);
        expect(await lockCount()).toBe(others.length);
        expect(events).toEqual([]);
        finish();
        await until(async () => (await database.client`select from queue_jobs`).length === 0);
        expect(
          await database.client`select distinct attempt from queue_results where state = 'completed'`,
        ).toEqual([{ attempt: 1 }]);
        await Promise.all(others.map(({ worker }) => worker.stop()));
        await until(async () => (await lockCount()) === 0);
      },
    );
  });
}

import { drizzle } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  defineJob,
  drain,
  handle,
  handleBatch,
  type JobDefinition,
  MissingMigrationError,
  schedulesIn,
  UnknownKindError,
  UnsupportedPostgresError,
  workflowsIn,
} from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import * as workflows from 'drizzle-queue/schema/workflows';
import postgres from 'postgres';
import { describe, expect, test, vi } from 'vitest';
import { startPostgres } from '../support/embedded-postgres.ts';
import { hasPostgres } from '../support/postgres-binaries.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

const database = useTestDatabase({ template: false });
const migrated = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { queue: 'mail' });
const handlers = [handle(work, () => {})];

describe('start', () => {
  test('says which command to run when the tables are missing', async () => {
    const worker = createWorker(database.db, { queue, handlers });
    await expect(worker.start()).rejects.toThrow(MissingMigrationError);
    await expect(worker.start()).rejects.toThrow('npx drizzle-kit generate && npx drizzle-kit migrate');
  });

  test('says all at once which tables are missing, which columns, and what the schema must export', async () => {
    const queue = createQueue({
      schedules: schedulesIn(control.queueSchedules),
      workflows: workflowsIn(workflows),
    });
    await expect(createWorker(database.db, { queue, handlers }).start()).rejects.toThrow(
      'The tables "queue_jobs", "queue_results", "queue_workers", "queue_pauses", "queue_schedules", ' +
        '"queue_steps", "queue_mailboxes", "queue_batches", "queue_waits" and "queue_tallies" do not exist. ' +
        'Run `npx drizzle-kit generate && npx drizzle-kit migrate` (your Drizzle schema must contain ' +
        "`export * from 'drizzle-queue/schema'` and `export * from 'drizzle-queue/schema/control'` " +
        "and `export * from 'drizzle-queue/schema/workflows'`)",
    );
    await migrated.client`alter table queue_results rename column metadata to other`;
    await migrated.client`alter table queue_pauses rename to other_pauses`;
    await expect(createWorker(migrated.db, { queue: createQueue(), handlers }).start()).rejects.toThrow(
      'The table "queue_pauses" does not exist. The table "queue_results" has no column metadata. Run ' +
        '`npx drizzle-kit generate && npx drizzle-kit migrate` (your Drizzle schema must contain ' +
        "`export * from 'drizzle-queue/schema'`)",
    );
    await migrated.client`alter table other_pauses rename to queue_pauses`;
    await migrated.client`alter table queue_results rename column other to metadata`;
  });

  test('says which column is missing', async () => {
    await migrated.client`alter table queue_results drop column metadata`;
    const worker = createWorker(migrated.db, { queue, handlers });
    await expect(worker.start()).rejects.toThrow('"queue_results" has no column metadata');
    await migrated.client`alter table queue_results add column metadata jsonb not null default '{}'`;
    // The same worker can be started once the migration has run.
    await worker.start();
    await worker.stop();
  });

  test.skipIf(!hasPostgres('13'))(
    // npm has no PostgreSQL 13 for the other platforms.
    'refuses PostgreSQL 13',
    async () => {
      const server = await startPostgres({ version: '13' });
      const client = postgres(server.url, { onnotice: () => {} });
      try {
        const worker = createWorker(drizzle({ client }), { queue, handlers });
        await expect(worker.start()).rejects.toThrow(UnsupportedPostgresError);
        await expect(worker.start()).rejects.toThrow('needs PostgreSQL 14 or newer; this server is 13.');
      } finally {
        await client.end();
        await server.stop();
      }
    },
  );

  test('that answers only after a stop has ended leaves no row, for which peers would wait', async () => {
    const rows = () => migrated.client`select name from queue_workers`;
    const ids = async () => JSON.stringify(await migrated.client`select * from queue_workers_id_seq`);
    const before = await ids();
    const worker = createWorker(migrated.db, { queue, handlers, name: 'late' });
    const errors: unknown[] = [];
    worker.on('error', (error) => errors.push(error));
    let starting: Promise<unknown> = Promise.resolve();
    await migrated.client.begin(async (tx) => {
      await tx`lock table queue_workers in exclusive mode`;
      starting = worker.start();
      await until(async () => {
        const waiting = await tx`
          select from pg_locks where relation = 'queue_workers'::regclass and not granted`;
        return waiting.length > 0;
      });
      await worker.stop();
    });
    await starting;
    await until(async () => (await ids()) !== before);
    // Waits until that insert is visible.
    await migrated.client.begin(async (tx) => await tx`lock table queue_workers in share mode`);
    await until(async () => (await rows()).length === 0);
    expect(errors).toEqual([]);
  });

  test('a database that cannot be reached is said to be that, with the reason', async () => {
    const client = postgres('postgres://127.0.0.1:1/none', { connect_timeout: 2 });
    const worker = createWorker(drizzle({ client }), { queue, handlers });
    await expect(worker.start()).rejects.toThrow(
      /^The worker cannot reach its database: connect ECONNREFUSED 127\.0\.0\.1:1$/,
    );
    await client.end();
  });

  test('so is one that does not exist', async () => {
    const url = new URL(database.url);
    url.pathname = '/nowhere';
    const client = postgres(url.href, { max: 1 });
    const worker = createWorker(drizzle({ client }), { queue, handlers });
    await expect(worker.start()).rejects.toThrow(
      /^The worker cannot reach its database: database "nowhere" does not exist$/,
    );
    await client.end();
  });
});

describe('createWorker', () => {
  const db = drizzle.mock();

  test('needs handlers, one per kind', () => {
    expect(() => createWorker(db, { queue, handlers: [] })).toThrow(UnknownKindError);
    expect(() => createWorker(db, { queue, handlers: [...handlers, ...handlers] })).toThrow(
      "two handlers for the kind 'work'",
    );
    // @ts-expect-error a kind's name is no definition
    expect(() => handle('work', () => {})).toThrow(UnknownKindError);
    // @ts-expect-error a definition is no handler
    expect(() => createWorker(db, { queue, handlers: [defineJob('work')] })).toThrow(
      "got the definition of 'work': write handle(job, function)",
    );
  });

  test.each([
    [{ pollIntervalMs: 1 }, 'pollIntervalMs must be a number of milliseconds from 5 to 60000, got 1'],
    [{ pollIntervalMs: Number.NaN }, 'got NaN'],
    [{ shutdownTimeoutMs: -1 }, 'shutdownTimeoutMs'],
    [{ retentionMs: -1 }, 'retentionMs'],
    [{ silentMs: 1_000 }, 'silentMs must be a number of milliseconds from 15000'],
    [{ name: '' }, 'name must be a string that is not empty'],
    [{ queues: {} }, 'queues is empty'],
    [
      { queues: Object.fromEntries(Array.from({ length: 10_001 }, (_, n) => [`q${n}`, {}])) },
      'at most 10000 queues, got 10001: divide them among several workers',
    ],
    [{ queues: { mail: { concurrency: 0 } } }, "queues['mail'].concurrency must be a whole number from 1"],
    [{ queues: { mail: { concurrency: 1.5 } } }, 'got 1.5'],
    [{ queues: { mail: { aging: { afterMs: 99 } } } }, 'got 99'],
  ])('refuses %o', (options, message) => {
    expect(() => createWorker(db, { queue, handlers, ...options })).toThrow(message);
  });

  test('refuses queues as a list of names, and says how to write them', async () => {
    const message = "not an array; write queues: { 'mail': {}, 'reports': {} }";
    const options = { queue, handlers, queues: ['mail', 'reports'] };
    // @ts-expect-error settings by name
    expect(() => createWorker(db, options)).toThrow(message);
    // @ts-expect-error settings by name
    await expect(drain(db, { ...options, deadlineMs: 1 })).rejects.toThrow(message);
    // @ts-expect-error settings by name
    expect(() => createWorker(db, { ...options, queues: 'mail' })).toThrow("must be an object, got 'mail'");
  });

  test('refuses aging that does not say after how long', () => {
    expect(() =>
      // @ts-expect-error how long, by name
      createWorker(db, { queue, handlers, queues: { mail: { aging: 60_000 } } }),
    ).toThrow("queues['mail'].aging must be an object, got 60000");
    expect(() =>
      // @ts-expect-error how long, by name
      createWorker(db, { queue, handlers, queues: { mail: { aging: {} } } }),
    ).toThrow("queues['mail'].aging.afterMs must be a number of milliseconds from 100");
  });

  test('refuses handlers that miss a kind of its jobs; those of batches count', () => {
    const [index, archive] = [defineJob('index'), defineJob('archive')];
    const all: JobDefinition[] = [...handlers.map(({ job }) => job), index, archive, index];
    const some = [...handlers, handleBatch(index, {}, () => {})];
    expect(() => createWorker(db, { queue, handlers: some, jobs: all })).toThrow(
      "createWorker: jobs has kinds without a handler: 'archive'. Add one for each",
    );
    expect(() => createWorker(db, { queue, handlers, jobs: all })).toThrow("'index', 'archive'");
    const every = [...some, handle(archive, () => {})];
    expect(() => createWorker(db, { queue, handlers: every, jobs: all })).not.toThrow();
    expect(() => createWorker(db, { queue, handlers: every, jobs: [index] })).not.toThrow();
    // @ts-expect-error a kind
    expect(() => createWorker(db, { queue, handlers, jobs: ['work'] })).toThrow(UnknownKindError);
    // @ts-expect-error no list
    expect(() => createWorker(db, { queue, handlers, jobs: index })).toThrow('jobs must be an array');
  });

  test('warns of a handler whose queue it does not serve', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    createWorker(db, { queue, handlers, queues: { male: {} } });
    expect(warn).toHaveBeenCalledWith(expect.stringContaining("'mail' is not among"), expect.anything());
    warn.mockRestore();
  });
});

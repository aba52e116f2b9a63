import { sql } from 'drizzle-orm';
import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePGlite } from 'drizzle-orm/pglite';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, type Database, defineJob, handle } from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { beforeEach, expect, test } from 'vitest';
import { emptyTables } from '../../support/empty-tables.ts';
import { openPglite } from '../../support/pglite.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase();
const queue = createQueue();
const greet = defineJob('greet');

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

interface Logger {
  logQuery(query: string): void;
}
interface Opened {
  readonly db: Database;
  readonly close: () => Promise<unknown>;
}

const drivers: Readonly<Record<string, (logger: Logger) => Opened | Promise<Opened>>> = {
  'postgres.js'(logger) {
    const client = postgres(database.url, { max: 4, onnotice: () => {} });
    return { db: drizzle({ client, logger }), close: () => client.end({ timeout: 1 }) };
  },
  'node-postgres'(logger) {
    const client = new pg.Pool({ connectionString: database.url, max: 4 });
    return { db: drizzleNodePostgres({ client, logger }), close: () => client.end() };
  },
  async PGlite(logger) {
    const client = await openPglite();
    return { db: drizzlePGlite({ client, logger }), close: () => client.close() };
  },
};

test.each(Object.entries(drivers))(
  "a worker leaves the app's logger to the app's own statements, on %s",
  async (_, open) => {
    const logged: string[] = [];
    const { db, close } = await open({ logQuery: (query) => void logged.push(query) });
    const enqueued = await queue.enqueue(db, greet);
    expect(logged).toEqual([expect.stringContaining('insert into "queue_jobs"')]);
    logged.length = 0;
    const run = async ({ db }: { db: Database }) => {
      await db.execute(sql`select 'of the handler'`);
      await db.transaction(async (tx) => void (await tx.execute(sql`select 'of its transaction'`)));
    };
    const worker = createWorker(db, { queue, handlers: [handle(greet, run)], log: false, pollIntervalMs: 5 });
    const completed = nextEvent(worker, 'completed');
    const idle = nextEvent(worker, 'idle');
    await worker.start();
    await Promise.all([completed, idle]);
    await worker.stop();
    // The worker has checked, registered, claimed, settled, beaten and left meanwhile.
    expect(logged.filter((query) => !/^(begin|commit)/i.test(query))).toEqual([
      "select 'of the handler'",
      "select 'of its transaction'",
    ]);
    expect((await queue.find(db, enqueued.id))?.state).toBe('completed');
    await close();
  },
);

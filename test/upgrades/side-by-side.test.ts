import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { sql } from 'drizzle-orm';
import { integer } from 'drizzle-orm/pg-core';
import * as present from 'drizzle-queue';
import { createQueueTables, queueJobs, queuePauses, queueResults, queueWorkers } from 'drizzle-queue/schema';
import { beforeAll, describe, expect, test } from 'vitest';
import { checkDatabase } from '../../src/core/queries/presence/check-database.ts';
import { type KitProject, kitMajor, schemaEntry, useKitProjects } from '../kit/kit-project.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';

/*
 * Nothing has been released yet. The version before stands for one: the code and the migration of a commit before the last
 * change of the tables, kept in `previous/` (see its README). When there is a release, it takes its place.
 */

type Library = Pick<
  typeof present,
  | 'createQueue'
  | 'createWorker'
  | 'defineJob'
  | 'fixedBackoff'
  | 'handle'
  | 'NonRetryableError'
  | 'unvalidated'
>;

const previousMigrations = fileURLToPath(new URL('./previous/drizzle', import.meta.url));
const exportAll = `export * from ${JSON.stringify(schemaEntry)};`;
const createProject = useKitProjects();
const database = useTestDatabase({ template: false, max: 10 });

/** The code of the version before. */
async function loadPrevious(): Promise<Library> {
  const path = './previous/drizzle-queue.mjs';
  return (await import(/* @vite-ignore */ path)) as Library;
}

/** The versions whose workers have begun one of the jobs that both are to work on. */
const arrived = new Set<string>();

/** One version's view of the same jobs: it notes which version ran which job. */
function side(library: Library, version: string, tables?: present.CreateQueueOptions['tables']) {
  const queue = library.createQueue({ tables });
  const count = library.defineJob('count', { payload: library.unvalidated<number>(), queue: 'q' });
  const flaky = library.defineJob('flaky', {
    payload: library.unvalidated<number>(),
    queue: 'q',
    maxAttempts: 3,
    backoff: library.fixedBackoff(0),
  });
  const doomed = library.defineJob('doomed', { queue: 'q' });
  const held = library.defineJob('held', { queue: 'q' });
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const ran: number[] = [];
  const errors: unknown[] = [];
  const worker = library.createWorker(database.db, {
    queue,
    handlers: [
      library.handle(count, async ({ payload }) => {
        // Or one of them might have done everything before the other has begun.
        arrived.add(version);
        await until(() => arrived.size === 2);
        ran.push(payload);
        return version;
      }),
      library.handle(flaky, async ({ payload, job }) => {
        if (job.attempt < 2) throw new Error('once');
        ran.push(payload);
        return version;
      }),
      library.handle(doomed, async () => {
        throw new library.NonRetryableError('never');
      }),
      library.handle(held, async () => {
        await released;
        return version;
      }),
    ],
    pollIntervalMs: 20,
  });
  worker.on('error', ({ error }) => errors.push(error));
  return { queue, count, flaky, doomed, held, worker, ran, errors, release };
}

type Side = ReturnType<typeof side>;

const numbers = (from: number) => Array.from({ length: 50 }, (_, n) => ({ payload: from + n }));

/** Both versions enqueue, both work, and each job is done once by one of them. */
async function workTogether(before: Side, after: Side): Promise<void> {
  const { db } = database;
  arrived.clear();
  for (const [index, { queue, count, flaky }] of [before, after].entries()) {
    await queue.enqueueMany(db, count, numbers(index * 1_000));
    await queue.enqueueMany(db, flaky, numbers(index * 1_000 + 500));
  }
  const key = { uniqueKey: 'one', delayMs: 3_600_000 };
  const first = await before.queue.enqueue(db, before.count, -1, key);
  expect(await after.queue.enqueue(db, after.count, -1, key)).toEqual({
    id: first.id,
    duplicate: true,
    outcome: 'duplicate',
  });
  expect(await after.queue.cancel(db, first.id)).toMatchObject({ cancelled: true });
  expect(await before.queue.find(db, first.id)).toMatchObject({ state: 'cancelled' });

  await until(() => before.ran.length + after.ran.length >= 200);
  await until(
    async () => (await after.queue.list(db, { state: 'running', kind: 'count' })).jobs.length === 0,
  );
  expect(new Set([...before.ran, ...after.ran]).size).toBe(200);
  expect(before.ran.length + after.ran.length).toBe(200);
  expect(before.ran.length).toBeGreaterThan(0);
  expect(after.ran.length).toBeGreaterThan(0);
}

describe('workers of the version before and of this one', { timeout: 400_000 }, () => {
  let project: KitProject;
  let before: Side;
  let after: Side;

  beforeAll(async () => {
    before = side(await loadPrevious(), 'before');
    after = side(present, 'after');
  });

  test('live jobs, results and a running worker outlast the migration, which only adds', async () => {
    const { db, client } = database;
    project = await createProject({ schema: exportAll, databaseUrl: database.url });
    await project.install('0.31');
    await project.copyMigrations(previousMigrations);
    await project.migrate();

    await before.worker.start();
    const { id: held } = await before.queue.enqueue(db, before.held);
    const { id: doomed } = await before.queue.enqueue(db, before.doomed);
    const { id: later } = await before.queue.enqueue(db, before.count, 5, { delayMs: 3_600_000 });
    await until(async () => (await before.queue.find(db, held))?.state === 'running');
    await until(async () => (await before.queue.find(db, doomed))?.state === 'discarded');

    const known = (await project.migrations()).length;
    await project.install(kitMajor);
    if (kitMajor === '1.0') await project.up();
    await project.generate();
    const added = (await project.migrations()).slice(known);
    expect(added.length).toBeLessThanOrEqual(1);
    for (const statement of added.flatMap((text) => text.split('--> statement-breakpoint'))) {
      expect(statement.trim()).toSatisfy(onlyAdds);
    }
    await project.migrate();
    await checkDatabase(db, { queueJobs, queueResults, queueWorkers, queuePauses });

    // What the version before has left is there for this one.
    expect(await after.queue.find(db, held)).toMatchObject({ state: 'running' });
    expect(await after.queue.find(db, doomed)).toMatchObject({
      state: 'discarded',
      errors: [{ message: 'never' }],
    });
    expect(await after.queue.find(db, later)).toMatchObject({ state: 'scheduled', payload: 5 });
    before.release();
    await until(async () => (await after.queue.find(db, held))?.state === 'completed');

    await after.worker.start();
    await workTogether(before, after);

    // A job that the version before has discarded, put back by this one, and the other way round.
    expect(await after.queue.redrive(db, doomed)).toMatchObject({ redriven: 1 });
    await until(async () => (await before.queue.find(db, doomed))?.state === 'discarded');
    expect(await before.queue.redrive(db, doomed)).toMatchObject({ redriven: 1 });
    await until(async () => (await after.queue.find(db, doomed))?.state === 'discarded');

    await Promise.all([before.worker.stop(), after.worker.stop()]);
    expect([...before.errors, ...after.errors]).toEqual([]);
    const [row] = await client<{ live: number }[]>`select count(*)::int as live from queue_jobs`;
    expect(row?.live).toBe(1);
  });
});

describe('workers of this version, and of one to come that adds columns with defaults', {
  timeout: 240_000,
}, () => {
  const next = createQueueTables({ columns: { added: integer('added').notNull().default(7) } });
  let before: Side;
  let after: Side;

  beforeAll(async () => {
    await database.client.unsafe('drop schema public cascade; create schema public');
    const folder = new URL('../../drizzle/', import.meta.url);
    const journal: { entries: { tag: string }[] } = JSON.parse(
      await readFile(new URL('meta/_journal.json', folder), 'utf8'),
    );
    for (const { tag } of journal.entries) {
      await database.client.unsafe(await readFile(new URL(`${tag}.sql`, folder), 'utf8'));
    }
    before = side(present, 'before');
    after = side(present, 'after', next);
  });

  test('work side by side', async () => {
    const { db, client } = database;
    await before.worker.start();
    for (const table of ['queue_jobs', 'queue_results']) {
      await db.execute(sql.raw(`alter table ${table} add column added int not null default 7`));
    }
    await after.worker.start();
    await workTogether(before, after);
    await Promise.all([before.worker.stop(), after.worker.stop()]);
    expect([...before.errors, ...after.errors]).toEqual([]);
    const rows = await client`select distinct added from queue_results`;
    expect(rows).toEqual([{ added: 7 }]);
  });
});

/** What a version may do to the tables while workers of the one before are still running. */
function onlyAdds(statement: string): boolean {
  if (/^CREATE (TABLE|INDEX) /.test(statement)) return true;
  const column = /^ALTER TABLE \S+ ADD COLUMN (.*);?$/.exec(statement)?.[1];
  return column !== undefined && (!/NOT NULL/.test(column) || /DEFAULT/.test(column));
}

test('a migration that does more than add is found', () => {
  expect(onlyAdds('ALTER TABLE "queue_jobs" ADD COLUMN "a" text;')).toBe(true);
  expect(onlyAdds('ALTER TABLE "queue_jobs" ADD COLUMN "a" int DEFAULT 0 NOT NULL;')).toBe(true);
  expect(onlyAdds('ALTER TABLE "queue_jobs" ADD COLUMN "a" int NOT NULL;')).toBe(false);
  expect(onlyAdds('ALTER TABLE "queue_jobs" DROP COLUMN "a";')).toBe(false);
  expect(onlyAdds('ALTER TABLE "queue_jobs" RENAME COLUMN "a" TO "b";')).toBe(false);
  expect(onlyAdds('CREATE UNIQUE INDEX "a" ON "queue_jobs" ("b");')).toBe(false);
  expect(onlyAdds('DROP INDEX "a";')).toBe(false);
});

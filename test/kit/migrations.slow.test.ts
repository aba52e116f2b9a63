import { fileURLToPath } from 'node:url';
import { queueJobs, queuePauses, queueResults, queueWorkers } from 'drizzle-queue/schema';
import { describe, expect, test } from 'vitest';
import { checkDatabase } from '../../src/core/queries/presence/check-database.ts';
import { partitionMigration } from '../support/partitions.ts';
import { useTestDatabase } from '../support/test-database.ts';
import {
  controlEntry,
  isPrimaryKeyAgain,
  kitMajor,
  metricsEntry,
  schemaEntry,
  useKitProjects,
} from './kit-project.ts';

const ownMigrations = fileURLToPath(new URL('../../drizzle', import.meta.url));
const controlMigrations = fileURLToPath(new URL('../../drizzle-control', import.meta.url));
const metricsMigrations = fileURLToPath(new URL('../../drizzle-metrics', import.meta.url));
const exportAll = `export * from ${JSON.stringify(schemaEntry)};`;
const exportControl = `export * from ${JSON.stringify(controlEntry)};`;
const exportMetrics = `export * from ${JSON.stringify(metricsEntry)};`;
const importCreate = `import { createQueueTables } from ${JSON.stringify(schemaEntry)};`;

const createProject = useKitProjects();

describe(`drizzle-kit ${kitMajor}`, { timeout: 400_000 }, () => {
  // They are in the format of 0.31, which 1.0 can be told to read; an app has its own.
  describe.skipIf(kitMajor === '1.0')("the library's own migrations", () => {
    test.each([
      ['the queue', exportAll, ownMigrations],
      ['what controls it', exportControl, controlMigrations],
      ['its metrics', exportMetrics, metricsMigrations],
    ])(
      'of %s are what drizzle-kit makes of the schema: nothing is left to generate',
      async (_, schema, own) => {
        const project = await createProject({ schema });
        await project.copyMigrations(own);
        const before = await project.migrations();
        expect(await project.generate()).toContain('No schema changes, nothing to migrate');
        expect(await project.migrations()).toEqual(before);
      },
    );

    test('would be found out of date', async () => {
      const project = await createProject({
        schema: `${exportAll} ${importCreate} export const { queueJobs: more } = createQueueTables({ prefix: 'more_' });`,
      });
      await project.copyMigrations(ownMigrations);
      const before = await project.migrations();
      await project.generate();
      const [added, ...rest] = (await project.migrations()).slice(before.length);
      expect(added).toContain('CREATE TABLE "more_jobs"');
      expect(added).not.toContain('queue_');
      expect(rest).toEqual([]);
    });
  });

  describe('push', () => {
    const database = useTestDatabase();

    test('finds what is missing, and puts it there', async () => {
      await database.client`alter table queue_jobs drop column metadata`;
      const project = await createProject({ schema: exportAll, databaseUrl: database.url });
      expect((await project.push()).filter((statement) => !isPrimaryKeyAgain(statement))).toEqual([
        expect.stringMatching(
          /^ALTER TABLE "queue_jobs" ADD COLUMN "metadata" jsonb DEFAULT '\{\}'(::jsonb)? NOT NULL;$/,
        ),
      ]);
      await checkDatabase(database.db, { queueJobs, queueResults, queueWorkers, queuePauses });
    });
  });

  describe('push of an app without migrations', () => {
    const database = useTestDatabase({ template: false });

    test('creates everything, and then finds nothing to do, twice', async () => {
      const project = await createProject({ schema: exportAll, databaseUrl: database.url });
      expect(await project.push()).not.toEqual([]);
      await checkDatabase(database.db, { queueJobs, queueResults, queueWorkers, queuePauses });
      for (let times = 0; times < 2; times++) {
        expect((await project.push()).filter((statement) => !isPrimaryKeyAgain(statement))).toEqual([]);
      }
    });
  });

  describe.each(['list', 'hash'] as const)('the custom migration of the pages, by %s', (partitioning) => {
    const database = useTestDatabase({ template: false });

    test('runs between those of drizzle-kit, which sees no change in it', async () => {
      const project = await createProject({ schema: exportAll, databaseUrl: database.url });
      await project.generate();
      await project.generateCustom('queue_partitions', partitionMigration(partitioning));
      await project.migrate();
      expect(await project.generate()).toContain('No schema changes, nothing to migrate');
      expect(await project.check()).toContain("Everything's fine");
      const rows = await database.client<{ name: string }[]>`
        select relname::text as name from pg_class where relkind = 'p' order by 1`;
      expect(rows.map(({ name }) => name)).toEqual(['queue_jobs', 'queue_results']);
      await checkDatabase(database.db, { queueJobs, queueResults, queueWorkers, queuePauses });
    });
  });
});

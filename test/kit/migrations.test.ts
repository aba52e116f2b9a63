import { fileURLToPath } from 'node:url';
import { getTableConfig, type PgTable, pgSchema, text } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, handle, runNext } from 'drizzle-queue';
import {
  createQueueTables,
  type QueueTables,
  queueJobs,
  queuePauses,
  queueResults,
  queueWorkers,
} from 'drizzle-queue/schema';
import { describe, expect, test } from 'vitest';
import { checkDatabase } from '../../src/queries/check-database.ts';
import { partitionMigration } from '../support/partitions.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { isPrimaryKeyAgain, kitMajor, schemaEntry, useKitProjects } from './kit-project.ts';

const ownMigrations = fileURLToPath(new URL('../../drizzle', import.meta.url));
const exportAll = `export * from ${JSON.stringify(schemaEntry)};`;
const importCreate = `import { createQueueTables } from ${JSON.stringify(schemaEntry)};`;

const createProject = useKitProjects();

describe(`drizzle-kit ${kitMajor}`, { timeout: 400_000 }, () => {
  // They are in the format of 0.31, which 1.0 can be told to read; an app has its own.
  describe.skipIf(kitMajor === '1.0')("the library's own migrations", () => {
    test('are what drizzle-kit makes of the schema: nothing is left to generate', async () => {
      const project = await createProject({ schema: exportAll });
      await project.copyMigrations(ownMigrations);
      const before = await project.migrations();
      expect(await project.generate()).toContain('No schema changes, nothing to migrate');
      expect(await project.migrations()).toEqual(before);
    });

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

  const work = pgSchema('work');
  const cases: Record<string, { schema: string; tables: QueueTables; schemaFilter?: string[] }> = {
    "export * from 'drizzle-queue/schema'": {
      schema: exportAll,
      tables: { queueJobs, queueResults, queueWorkers, queuePauses },
    },
    'a prefix of its own': {
      schema: `${importCreate}
        export const { queueJobs, queueResults, queueWorkers, queuePauses } = createQueueTables({ prefix: 'mail_' });`,
      tables: createQueueTables({ prefix: 'mail_' }),
    },
    'a Postgres schema of its own': {
      schema: `${importCreate}
        import { getTableConfig, pgSchema, text } from 'drizzle-orm/pg-core';
        export const work = pgSchema('work');
        export const { queueJobs, queueResults, queueWorkers, queuePauses } = createQueueTables({ schema: work });`,
      tables: createQueueTables({ schema: work }),
      schemaFilter: ['public', 'work'],
    },
    'columns of its own': {
      schema: `${importCreate}
        import { text } from 'drizzle-orm/pg-core';
        export const { queueJobs, queueResults, queueWorkers, queuePauses } =
          createQueueTables({ columns: { tenantId: text('tenant_id') } });`,
      tables: createQueueTables({ columns: { tenantId: text('tenant_id') } }),
    },
  };

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

  describe.skipIf(kitMajor === '0.31').each(Object.entries(cases))(
    'an app that updates from drizzle-kit 0.31 to 1.0, with %s',
    (_what, { schema, tables, schemaFilter }) => {
      const database = useTestDatabase({ template: false });

      test('sees no change in the tables', async () => {
        const project = await createProject({
          schema,
          databaseUrl: database.url,
          ...(schemaFilter !== undefined && { schemaFilter }),
        });
        await project.install('0.31');
        await project.generate();
        await project.migrate();
        await project.install('1.0');
        await project.up();
        expect(await project.generate()).toContain('No schema changes, nothing to migrate');
        expect(await project.migrations()).toHaveLength(1);
        await project.migrate();
        expect(await project.push()).toEqual([]);
        await checkDatabase(database.db, tables);
      });
    },
  );

  describe.each(Object.entries(cases))(
    "an app's schema with %s",
    (_what, { schema, tables, schemaFilter }) => {
      const database = useTestDatabase({ template: false });

      test('is generated, migrated, and then finished as far as drizzle-kit can see', async () => {
        const project = await createProject({
          schema,
          databaseUrl: database.url,
          ...(schemaFilter !== undefined && { schemaFilter }),
        });
        await project.generate();
        expect(await project.migrations()).toHaveLength(1);
        await expect(checkDatabase(database.db, tables)).rejects.toThrow('Run `drizzle-kit generate');
        await project.migrate();

        await checkDatabase(database.db, tables);
        const queue = createQueue({ tables });
        const job = defineJob('sync');
        const { id } = await queue.enqueue(database.db, job, undefined, { uniqueKey: 'k' });
        expect(await queue.enqueue(database.db, job, undefined, { uniqueKey: 'k' })).toEqual({
          id,
          duplicate: true,
        });
        const ran = await runNext(database.db, { queue, handlers: [handle(job, async () => 'done')] });
        expect(ran?.outcome).toBe('completed');
        expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed', output: 'done' });

        expect(await project.generate()).toContain('No schema changes, nothing to migrate');
        expect(await project.migrations()).toHaveLength(1);
        expect(await project.check()).toContain("Everything's fine");
        for (let times = 0; times < 2; times++) {
          expect((await project.push()).filter((statement) => !isPrimaryKeyAgain(statement))).toEqual([]);
        }
        await checkDatabase(database.db, tables);

        const own = Object.values(tables).map((table: PgTable) => {
          const { schema, name, columns } = getTableConfig(table);
          const path = schema === undefined ? name : `${schema}.${name}`;
          return [path, columns.map((column) => column.name).sort()];
        });
        expect(await project.pull()).toEqual(Object.fromEntries(own));
      });
    },
  );
});

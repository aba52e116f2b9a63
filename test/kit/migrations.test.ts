import { fileURLToPath } from 'node:url';
import { pgSchema } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, handle, runNext } from 'drizzle-queue';
import {
  createQueueTables,
  type QueueTables,
  queueJobs,
  queuePauses,
  queueResults,
  queueWorkers,
} from 'drizzle-queue/schema';
import { afterEach, describe, expect, test } from 'vitest';
import { checkDatabase } from '../../src/queries/check-database.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { KitProject, type KitProjectOptions, schemaEntry } from './kit-project.ts';

const ownMigrations = fileURLToPath(new URL('../../drizzle', import.meta.url));
const exportAll = `export * from ${JSON.stringify(schemaEntry)};`;
const importCreate = `import { createQueueTables } from ${JSON.stringify(schemaEntry)};`;

const projects: KitProject[] = [];

afterEach(async () => {
  await Promise.all(projects.splice(0).map((project) => project.remove()));
});

async function createProject(options: KitProjectOptions): Promise<KitProject> {
  const project = await KitProject.create(options);
  projects.push(project);
  return project;
}

/**
 * drizzle-kit 0.31 reads the columns of a composite primary key in whatever order Postgres answers, and then may find it changed
 * (drizzle-team/drizzle-orm#6078; 1.0 reads them in order).
 */
function isPrimaryKeyAgain(statement: string): boolean {
  return /^ALTER TABLE \S+ (DROP CONSTRAINT "\w+_pkey"|ADD CONSTRAINT "\w+_pkey" PRIMARY KEY\(.*\));$/.test(
    statement,
  );
}

// drizzle-kit 0.31 loads drizzle-orm 0.45 by itself, whichever of them the tests run with.
describe.skipIf(process.env.DRIZZLE === 'v1')('drizzle-kit', { timeout: 120_000 }, () => {
  describe("the library's own migrations", () => {
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
        'ALTER TABLE "queue_jobs" ADD COLUMN "metadata" jsonb DEFAULT \'{}\'::jsonb NOT NULL;',
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
        import { pgSchema } from 'drizzle-orm/pg-core';
        export const work = pgSchema('work');
        export const { queueJobs, queueResults, queueWorkers, queuePauses } = createQueueTables({ schema: work });`,
      tables: createQueueTables({ schema: work }),
      schemaFilter: ['public', 'work'],
    },
  };

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
        expect(await project.generate()).toContain('Your SQL migration file');
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
        expect((await project.push()).filter((statement) => !isPrimaryKeyAgain(statement))).toEqual([]);
      });
    },
  );
});

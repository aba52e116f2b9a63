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
import { checkDatabase } from '../../src/core/queries/presence/check-database.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { isPrimaryKeyAgain, kitMajor, schemaEntry, useKitProjects } from './kit-project.ts';

const exportAll = `export * from ${JSON.stringify(schemaEntry)};`;
const importCreate = `import { createQueueTables } from ${JSON.stringify(schemaEntry)};`;

const createProject = useKitProjects();

describe(`drizzle-kit ${kitMajor}`, { timeout: 400_000 }, () => {
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
        await expect(checkDatabase(database.db, tables)).rejects.toThrow('Run `npx drizzle-kit generate');
        await project.migrate();

        await checkDatabase(database.db, tables);
        const queue = createQueue({ tables });
        const job = defineJob('sync');
        const { id } = await queue.enqueue(database.db, job, undefined, { uniqueKey: 'k' });
        expect(await queue.enqueue(database.db, job, undefined, { uniqueKey: 'k' })).toEqual({
          id,
          duplicate: true,
          outcome: 'duplicate',
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

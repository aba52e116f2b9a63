import { createQueue, createWorker, defineJob, handle, unvalidated } from 'drizzle-queue';
import { beforeAll, describe, expect, test } from 'vitest';
import { claimJobsQuery } from '../../src/core/queries/claim/claim-jobs.ts';
import { checkDatabase } from '../../src/core/queries/presence/check-database.ts';
import { finishJobsQuery } from '../../src/core/queries/settle/finish-jobs.ts';
import { rescheduleJobsQuery } from '../../src/core/queries/settle/reschedule-jobs.ts';
import { queryRows } from '../../src/core/sql/executor.ts';
import { explain, nodesOf } from '../queries/support/explain.ts';
import { addJobs, claimOf, tables } from '../queries/support/jobs.ts';
import { allStatements } from '../queries/support/statements.ts';
import { addControlTables, addMetricsTable, addWorkflowTables } from '../support/control-tables.ts';
import {
  laterChanges,
  type Partitioning,
  partitionMigration,
  partitionTables,
} from '../support/partitions.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { behaviours } from './behaviours.ts';

const forms: readonly Partitioning[] = ['list', 'hash'];

// A run on partitioned tables already does all of this, with every other test.
describe.skipIf(process.env.PARTITIONS)('tables partitioned by queue', () => {
  describe.each(forms)('by %s', (form) => {
    // By hash in the slow tests.
    describe.runIf(form === 'list')('behave as plain ones', () => {
      const database = useTestDatabase();
      beforeAll(() => partitionTables(database.url, form));
      behaviours(() => database.db, { url: () => database.url });
    });

    describe('take every statement', () => {
      const database = useTestDatabase();
      beforeAll(async () => {
        await partitionTables(database.url, form);
        await addControlTables(database);
        await addMetricsTable(database);
        await addWorkflowTables(database);
      });

      test.each(Object.entries(allStatements(tables)))('%s', async (_, query) => {
        await database.db.transaction(async (tx) => {
          expect(await queryRows(tx, tables, query)).toBeInstanceOf(Array);
        });
      });

      test('and are found complete', async () => {
        await expect(checkDatabase(database.db, tables)).resolves.toBe(tables);
        const rows = await database.client<{ name: string }[]>`
          select relname::text as name from pg_class where relkind = 'p' order by 1`;
        expect(rows.map(({ name }) => name)).toEqual(['queue_jobs', 'queue_results']);
      });

      test('have the keys, indexes and checks of plain ones, under the same names', async () => {
        const plain = await plainDatabase.client`${namesQuery(plainDatabase)}`;
        expect(plain.length).toBeGreaterThan(6);
        expect(await database.client`${namesQuery(database)}`).toEqual(plain);
      });
    });

    describe('are looked at one partition at a time', () => {
      const database = useTestDatabase({ max: 1 });
      const queues = Array.from({ length: 12 }, (_, n) => `q${n}`);
      beforeAll(async () => {
        await partitionTables(database.url, form);
        if (form === 'list')
          await database.client`
          create table queue_jobs_q1 partition of queue_jobs for values in ('q1')`;
        await addJobs(
          database.client,
          queues.flatMap((queue) => [{ queue }, { queue, workerId: 1, fence: 1 }]),
        );
      });

      const held = { queue: 'q1', workerId: 1 };
      const finish = {
        type: 'finish',
        state: 'completed',
        output: null,
        error: null,
        keepResult: true,
      } as const;
      const retry = { type: 'reschedule', delayMs: 0, attempt: 1, error: null } as const;
      test.each([
        ['a claim', claimJobsQuery(tables, claimOf({ queue: 'q1', limit: 10 }))],
        ['a finish', finishJobsQuery(tables, held, [{ id: 4, fence: 1, transition: finish }])],
        ['a reschedule', rescheduleJobsQuery(tables, held, [{ id: 4, fence: 1, transition: retry }])],
      ])('by %s', async (_, query) => {
        for (const mode of ['force_custom_plan', 'force_generic_plan'] as const) {
          const plan = await explain(database, query, mode);
          const partitions = nodesOf(plan)
            .filter((node) => node['Actual Loops'] > 0)
            .flatMap((node) => node['Relation Name'] ?? [])
            .filter((name) => name.startsWith('queue_jobs_'));
          expect(partitions.length, mode).toBeGreaterThan(0);
          expect(new Set(partitions).size, mode).toBe(1);
        }
      });
    });

    describe('are made of plain ones', () => {
      const database = useTestDatabase();
      const queue = createQueue();
      const count = defineJob('count', { payload: unvalidated<number>() });

      test('with all their rows, while a worker works', async () => {
        const { db, client } = database;
        const done: number[] = [];
        const worker = createWorker(db, {
          queue,
          handlers: [handle(count, async ({ payload }) => void done.push(payload))],
          queues: { default: {}, mail: {} },
        });
        const errors: unknown[] = [];
        worker.on('error', ({ error }) => errors.push(error));
        await worker.start();
        const enqueue = (from: number, name: string) =>
          queue.enqueueMany(
            db,
            count,
            Array.from({ length: 50 }, (_, n) => ({
              payload: from + n,
              queue: name,
              uniqueKey: `k${from + n}`,
            })),
          );
        const before = [...(await enqueue(0, 'default')), ...(await enqueue(50, 'mail'))];
        const later = await queue.enqueue(db, count, -1, { delayMs: 3_600_000, uniqueKey: 'later' });
        await partitionTables(database.url, form);
        const after = [...(await enqueue(100, 'default')), ...(await enqueue(150, 'mail'))];
        await until(() => done.length === 200);
        await worker.stop();

        expect(new Set(done).size).toBe(200);
        expect(errors).toEqual([]);
        expect(Math.min(...after.map(({ id }) => id))).toBeGreaterThan(
          Math.max(later.id, ...before.map(({ id }) => id)),
        );
        // The key that was taken before is taken still.
        expect(await queue.enqueue(db, count, -1, { uniqueKey: 'later' })).toEqual({
          id: later.id,
          duplicate: true,
          outcome: 'duplicate',
        });
        const [row] = await client<{ results: number }[]>`select count(*)::int as results from queue_results`;
        expect(row?.results).toBe(200);
      });
    });
  });

  const plainDatabase = useTestDatabase();

  /** Names and definitions of what belongs to the two tables. */
  function namesQuery({ client }: Pick<typeof plainDatabase, 'client'>) {
    return client`
      select c.relname::text as table, i.relname::text as name, replace(pg_get_indexdef(i.oid), ' ON ONLY ', ' ON ') as definition
      from pg_index as x join pg_class as i on i.oid = x.indexrelid join pg_class as c on c.oid = x.indrelid
      where c.relname in ('queue_jobs', 'queue_results')
      union all
      select conrelid::regclass::text, conname::text, pg_get_constraintdef(oid) from pg_constraint
      where conrelid::regclass::text in ('queue_jobs', 'queue_results') and contype in ('p', 'c')
      union all
      select 'queue_jobs', pg_get_serial_sequence('queue_jobs', 'id'), null
      order by 1, 2, 3`;
  }

  describe('the later changes on the page', () => {
    const database = useTestDatabase();

    test('keep the jobs', async () => {
      await partitionTables(database.url, 'list');
      const ids = await addJobs(database.client, [{ queue: 'reports' }, { queue: 'other' }]);
      expect(laterChanges()).not.toEqual([]);
      for (const code of laterChanges()) await database.client.begin((tx) => tx.unsafe(code));
      const rows = await database.client<{ id: string; place: string }[]>`
        select id, tableoid::regclass::text as place from queue_jobs order by id`;
      expect(rows.map(({ id, place }) => [Number(id), place])).toEqual([
        [ids[0], 'queue_jobs_reports'],
        [ids[1], 'queue_jobs_rest'],
      ]);
    });
  });
});

test('the page gives one migration for each form, statement by statement', () => {
  for (const form of forms) {
    const statements = partitionMigration(form).split('--> statement-breakpoint');
    expect(statements.length).toBeGreaterThan(10);
    for (const statement of statements) expect(statement.trim()).toMatch(/^[^;]+;$/);
  }
});

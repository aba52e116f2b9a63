import { createQueue, createWorker, defineJob, handle, limitsIn, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import postgres from 'postgres';
import { beforeAll, describe, expect, test } from 'vitest';
import { queryRows } from '../../src/core/sql/executor.ts';
import { tables } from '../queries/support/jobs.ts';
import { allStatements } from '../queries/support/statements.ts';
import { addControlTables, addMetricsTable, addWorkflowTables } from '../support/control-tables.ts';
import { dailyUpkeep, resultsByTimeMigration } from '../support/partitions.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { behaviours } from './behaviours.ts';

/** Runs a script of the page in one transaction, as drizzle-kit does. */
async function runScript(url: string, script: string): Promise<void> {
  const client = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await client.begin((sql) => sql.unsafe(script));
  } finally {
    await client.end();
  }
}

// A run on partitioned tables has them partitioned by queue.
describe.skipIf(process.env.PARTITIONS)('results partitioned by time', () => {
  describe('behave as plain ones', () => {
    const database = useTestDatabase();
    beforeAll(async () => {
      await runScript(database.url, resultsByTimeMigration());
      await runScript(database.url, dailyUpkeep());
    });
    behaviours(() => database.db, { url: () => database.url });
  });

  describe('take every statement', () => {
    const database = useTestDatabase();
    beforeAll(async () => {
      await runScript(database.url, resultsByTimeMigration());
      await addControlTables(database);
      await addMetricsTable(database);
      await addWorkflowTables(database);
    });

    test.each(Object.entries(allStatements(tables)))('%s', async (_, query) => {
      await database.db.transaction(async (tx) => {
        expect(await queryRows(tx, tables, query)).toBeInstanceOf(Array);
      });
    });

    test('and queue.check finds nothing wrong with their key', async () => {
      // The statements have put jobs of its queue into groups, and enqueued some that nobody works on.
      const limits = limitsIn(control, { mail: { groups: {} } });
      const findings = await createQueue({ limits }).check(database.db);
      const others = findings.filter(({ code }) => code !== 'kind-unserved');
      expect(others.filter(({ severity }) => severity !== 'hint')).toEqual([]);
    });

    test('but it finds a key that lacks a column of the job', async () => {
      await database.client`alter table queue_results drop constraint queue_results_pkey`;
      await database.client`alter table queue_results add primary key (job_id, finished_at)`;
      const findings = await createQueue().check(database.db);
      expect(findings.map(({ code }) => code)).toContain('index-missing');
    });
  });

  describe('get new days and lose old ones', () => {
    const database = useTestDatabase();
    const queue = createQueue();
    const note = defineJob('note', { payload: unvalidated<number>(), keepResult: true });
    const partitions = async (): Promise<string[]> => {
      const rows = await database.client<{ name: string }[]>`
        select inhrelid::regclass::text as name from pg_inherits
        where inhparent = 'queue_results'::regclass order by 1`;
      return rows.map(({ name }) => name);
    };

    test('while a worker writes results', async () => {
      const { db, client, url } = database;
      const done = new Set<number>();
      const worker = createWorker(db, {
        queue,
        handlers: [handle(note, async ({ payload }) => void done.add(payload))],
        retentionMs: Number.POSITIVE_INFINITY,
      });
      const errors: unknown[] = [];
      worker.on('error', ({ error }) => errors.push(error));
      await worker.start();
      const enqueue = (from: number) =>
        queue.enqueueMany(
          db,
          note,
          Array.from({ length: 100 }, (_, n) => ({ payload: from + n })),
        );
      await enqueue(0);
      await runScript(url, resultsByTimeMigration());
      await enqueue(100);
      await client`create table queue_results_20200101 partition of queue_results
        for values from ('2020-01-01 00:00+00') to ('2020-01-02 00:00+00')`;
      expect(await partitions()).toEqual(['queue_results_20200101', 'queue_results_rest']);
      await runScript(url, dailyUpkeep());
      await enqueue(200);
      await runScript(url, dailyUpkeep());
      await until(() => done.size === 300);
      await worker.stop();

      const names = await partitions();
      expect(names).toHaveLength(8);
      expect(names).not.toContain('queue_results_20200101');
      expect(errors).toEqual([]);
      const [row] = await client<{ results: number }[]>`select count(*)::int as results from queue_results`;
      expect(row?.results).toBe(300);
    });

    test('and each day takes the results that end on it', async () => {
      const [tomorrow] = (await partitions()).filter((name) => name !== 'queue_results_rest');
      const { client } = database;
      await client`update queue_results set finished_at = finished_at + interval '1 day' where job_id = 1`;
      const rows = await client<{ place: string; utc: string }[]>`
        select tableoid::regclass::text as place, to_char(finished_at at time zone 'UTC', 'YYYYMMDD') as utc
        from queue_results where job_id = 1`;
      expect(rows).toEqual([{ place: tomorrow, utc: tomorrow?.slice(-8) }]);
      expect(await queue.find(database.db, note, 1)).toMatchObject({ id: 1, state: 'completed' });
    });
  });
});

import { asc, sql } from 'drizzle-orm';
import { pgSchema } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, limitsIn, schedulesIn, unvalidated, workflowsIn } from 'drizzle-queue';
import { createQueueTables, type QueueTables } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import { createControlTables } from 'drizzle-queue/schema/control';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { createWorkflowTables } from 'drizzle-queue/schema/workflows';
import { beforeAll, describe, expect, test } from 'vitest';
import { claimJobs } from '../../src/core/queries/claim/claim-jobs.ts';
import { checkDatabase } from '../../src/core/queries/presence/check-database.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { queryRows } from '../../src/core/sql/executor.ts';
import { quotedName } from '../../src/core/sql/quoted-name.ts';
import { claimOf } from '../queries/support/jobs.ts';
import { allStatements } from '../queries/support/statements.ts';
import { addControlTables, addMetricsTable, addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();

const places: Readonly<Record<string, QueueTables>> = {
  'with a prefix': createQueueTables({ prefix: 'mail_' }),
  'in a schema': createQueueTables({ schema: pgSchema('jobs') }),
  'in a schema whose name needs quotes, with a prefix': createQueueTables({
    schema: pgSchema('Odd "jobs"'),
    prefix: 'b_',
  }),
};

beforeAll(async () => {
  await addControlTables(database);
  await addMetricsTable(database);
  await addWorkflowTables(database);
  await database.client`create schema jobs`;
  await database.client`create schema "Odd ""jobs"""`;
  for (const tables of Object.values(places)) {
    for (const [original, table] of [
      ['queue_jobs', tables.queueJobs],
      ['queue_results', tables.queueResults],
      ['queue_workers', tables.queueWorkers],
      ['queue_pauses', tables.queuePauses],
    ] as const) {
      await database.client.unsafe(`create table ${quotedName(table)} (like ${original} including all)`);
    }
  }
  // Whoever reads these reads the wrong ones.
  await database.client`alter table queue_jobs rename to not_queue_jobs`;
  await database.client`alter table queue_results rename to not_queue_results`;
  await database.client`alter table queue_workers rename to not_queue_workers`;
  await database.client`alter table queue_pauses rename to not_queue_pauses`;
});

describe.each(Object.entries(places))('tables %s', (_, tables) => {
  test.each(Object.entries(allStatements(tables)))('%s runs', async (_, query) => {
    await database.db.transaction(async (tx) => {
      expect(await queryRows(tx, tables, query)).toBeInstanceOf(Array);
    });
  });

  test('checkDatabase finds them', async () => {
    await expect(checkDatabase(database.db, tables)).resolves.toBe(tables);
  });

  test('a job’s whole life', async () => {
    const queue = createQueue({ tables });
    const sync = defineJob('sync', { payload: unvalidated<unknown>(), queue: 'q' });
    await database.client.unsafe(
      `truncate ${quotedName(tables.queueJobs)}, ${quotedName(tables.queueResults)}`,
    );
    const { db } = database;

    const { id } = await queue.enqueue(db, sync, 1, { uniqueKey: 'u' });
    expect(await queue.enqueue(db, sync, 1, { uniqueKey: 'u' })).toEqual({
      id,
      duplicate: true,
      outcome: 'duplicate',
    });
    const [again, fresh] = await queue.enqueueMany(db, sync, [
      { payload: 2, uniqueKey: 'u' },
      { payload: 3, uniqueKey: 'v', delayMs: 60_000 },
    ]);
    expect(again).toEqual({ id, duplicate: true, outcome: 'duplicate' });
    const select = db
      .select({ n: sql<number>`n`.as('n') })
      .from(sql`generate_series(1, 3) as n`)
      .orderBy(asc(sql`n`));
    expect(await queue.enqueueFrom(db, sync, select, { delayMs: 60_000 })).toEqual({
      enqueued: 3,
      duplicates: 0,
    });

    const [job] = await claimJobs(db, tables, claimOf({ kinds: ['sync'] }));
    expect(job).toMatchObject({ id, attempt: 1 });
    await finishJobs(db, tables, { queue: 'q', workerId: 1 }, [
      {
        id,
        fence: job?.fence ?? 0,
        transition: { type: 'finish', state: 'discarded', output: null, error: null, keepResult: true },
      },
    ]);
    expect(await queue.find(db, id)).toMatchObject({ state: 'discarded' });
    expect(await queue.redrive(db, id)).toEqual({ redriven: 1, duplicates: 0 });
    expect(await queue.cancel(db, Number(fresh?.id))).toEqual({ cancelled: true });
    const { jobs } = await queue.list(db, { job: sync });
    expect(jobs.map(({ state }) => state)).toEqual([
      'scheduled',
      'scheduled',
      'scheduled',
      'cancelled',
      'due',
    ]);
  });
});

describe('tables of a feature beside jobs that are not of their set', () => {
  const work = pgSchema('work');
  const mail = createQueueTables({ prefix: 'mail_' });

  test.each([
    [
      'steps',
      () => createQueue({ tables: mail, workflows: workflowsIn(workflowTables) }),
      "workflowsIn: the table queue_steps does not belong to the jobs in mail_jobs. Each queue has its own tables, with its prefix and schema: createWorkflowTables({ prefix: 'mail_' })",
    ],
    [
      'limits',
      () => createQueue({ tables: mail, limits: limitsIn(control, {}) }),
      "limitsIn: the table queue_limits does not belong to the jobs in mail_jobs. Each queue has its own tables, with its prefix and schema: createControlTables({ prefix: 'mail_' })",
    ],
    [
      'schedules, in another schema',
      () =>
        createQueue({
          tables: createQueueTables({ schema: work }),
          schedules: schedulesIn(control.queueSchedules),
        }),
      "schedulesIn: the table queue_schedules does not belong to the jobs in work.queue_jobs. Each queue has its own tables, with its prefix and schema: createControlTables({ prefix: 'queue_', schema })",
    ],
  ])('are refused: %s', (_, create, message) => {
    expect(create).toThrow(new TypeError(message));
  });

  test('are taken where they are of the same set', () => {
    const options = { prefix: 'mail_', schema: work } as const;
    const queue = createQueue({
      tables: createQueueTables(options),
      workflows: workflowsIn(createWorkflowTables(options)),
      limits: limitsIn(createControlTables(options), {}),
      schedules: schedulesIn(createControlTables(options).queueSchedules),
    });
    expect(queue.workflows.tables).toBeDefined();
  });
});

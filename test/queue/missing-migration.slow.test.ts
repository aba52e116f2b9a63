import { sql } from 'drizzle-orm';
import { getTableConfig, integer, type PgTable, pgTable } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, MissingMigrationError, unvalidated } from 'drizzle-queue';
import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { beforeAll, describe, expect, test } from 'vitest';
import { checkDatabase } from '../../src/core/queries/presence/check-database.ts';
import { queryRows } from '../../src/core/sql/executor.ts';
import { scheduleTables, tables } from '../queries/support/jobs.ts';
import { allStatements } from '../queries/support/statements.ts';
import { addControlTables, addMetricsTable, addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const queue = createQueue();
const tick = defineJob('tick');
const index = defineJob('index', { payload: unvalidated<{ id: number }>() });
const anything = defineJob('anything', { payload: unvalidated<unknown>() });
const isRollback = (error: unknown) =>
  error instanceof Error && error.constructor.name === 'TransactionRollbackError';
const command = /Run `npx drizzle-kit generate && npx drizzle-kit migrate`/;

describe('without the tables', () => {
  const database = useTestDatabase({ template: false });
  const numbers = () =>
    database.db.select({ id: sql<number>`n`.as('n') }).from(sql`generate_series(1, 2) as n`);

  test.each<[string, () => Promise<unknown>]>([
    ['enqueue', () => queue.enqueue(database.db, tick)],
    ['enqueueMany', () => queue.enqueueMany(database.db, tick, [{ uniqueKey: 'a' }, { uniqueKey: 'b' }])],
    ['enqueueFrom', () => queue.enqueueFrom(database.db, index, numbers())],
    ['find', () => queue.find(database.db, 1)],
    ['list', () => queue.list(database.db)],
    ['cancel', () => queue.cancel(database.db, 1)],
    ['pause', () => queue.pause(database.db, 'q')],
    ['resume', () => queue.resume(database.db, 'q')],
    ['paused', () => queue.paused(database.db)],
    ['redrive', () => queue.redrive(database.db, { all: true })],
    ['stats', () => queue.stats(database.db)],
    ['vitals', () => queue.vitals(database.db)],
    ['checkDatabase', () => checkDatabase(database.db, tables)],
  ])('%s names the command to run', async (_, call) => {
    await expect(call()).rejects.toBeInstanceOf(MissingMigrationError);
    await expect(call()).rejects.toThrow(command);
    await expect(call()).rejects.toThrow(/queue_\w+/);
  });

  test('the error of the driver is its cause', async () => {
    await expect(queue.enqueue(database.db, tick)).rejects.toMatchObject({
      cause: { code: '42P01' },
    });
  });
});

describe('with tables of an older version, which lack a column', () => {
  const database = useTestDatabase();
  beforeAll(async () => {
    await addControlTables(database);
    await addMetricsTable(database);
    await addWorkflowTables(database);
  });
  const known = { ...scheduleTables, queueMetrics };
  const columns = Object.values(known).flatMap((table: PgTable) => {
    const { name, columns } = getTableConfig(table);
    // Postgres drops no column that the table is partitioned by.
    const dropped = process.env.PARTITIONS ? columns.filter((column) => column.name !== 'queue') : columns;
    // Nothing reads it yet.
    const read = dropped.filter((column) => column.name !== 'blockers');
    return read.map((column) => [name, column.name] as const);
  });

  const statements = Object.entries(allStatements(tables));

  test.each(columns)('%s.%s', async (table, column) => {
    let missed = 0;
    // Undone once, and each statement in a savepoint: a table that changes for each of them takes ten times as long.
    const all = database.db.transaction(async (tx) => {
      await tx.execute(sql.raw(`alter table ${table} drop column ${column} cascade`));
      for (const [name, query] of statements) {
        await tx
          .transaction(async (savepoint) => {
            await queryRows(savepoint, known, query);
            savepoint.rollback();
          })
          .catch((error: unknown) => {
            if (isRollback(error)) return;
            expect(error, `${name}: ${error instanceof Error ? error.cause : error}`).toBeInstanceOf(
              MissingMigrationError,
            );
            expect(error).toMatchObject({ message: expect.stringMatching(command) });
            missed++;
          });
      }
      tx.rollback();
    });
    await expect(all).rejects.toSatisfy(isRollback);
    expect(missed).toBeGreaterThan(0);
  });

  test('checkDatabase says which', async () => {
    await checkDatabase(database.db, tables);
    await database.client`alter table queue_jobs drop column metadata, drop column fence`;
    await expect(checkDatabase(database.db, tables)).rejects.toBeInstanceOf(MissingMigrationError);
    await expect(checkDatabase(database.db, tables)).rejects.toThrow(
      /The table "queue_jobs" has no column fence, metadata\. Run /,
    );
  });
});

describe('the user’s own missing table or column inside enqueueFrom', () => {
  const database = useTestDatabase();
  const nowhere = pgTable('my_queue_jobs', { id: integer('id') });
  const somewhere = pgTable('somewhere', { id: integer('nobody_has_me') });

  test.each([
    ['table', () => database.db.select({ id: nowhere.id }).from(nowhere), '42P01', /"my_queue_jobs"/],
    ['column', () => database.db.select({ id: somewhere.id }).from(somewhere), '42703', /"nobody_has_me"/],
    [
      'column of an alias like ours',
      () => database.db.select({ id: sql`j.x`.as('x') }).from(sql`somewhere as j`),
      '42703',
      /j\.x/,
    ],
  ])('%s: stays the driver’s error', async (_, select, code, message) => {
    await database.client`create table if not exists somewhere (id int)`;
    for (const options of [{}, { uniqueKey: () => sql`'k'` }]) {
      const failing = queue.enqueueFrom(database.db, anything, select(), options);
      await expect(failing).rejects.not.toBeInstanceOf(MissingMigrationError);
      await expect(failing).rejects.toMatchObject({
        cause: { code, message: expect.stringMatching(message) },
      });
    }
  });

  test('our own missing column in the same statement names the command', async () => {
    await database.client`alter table queue_jobs drop column metadata`;
    const select = database.db.select({ id: sql`1`.as('id') }).from(sql`generate_series(1, 2)`);
    for (const options of [{}, { uniqueKey: () => sql`'k'` }]) {
      await expect(queue.enqueueFrom(database.db, anything, select, options)).rejects.toBeInstanceOf(
        MissingMigrationError,
      );
    }
  });
});

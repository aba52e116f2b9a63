import { sql } from 'drizzle-orm';
import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core';
import type { Queue, Transaction } from '../../index.ts';
import { tablesOf } from './tables-of.ts';

/**
 * Gives a transaction empty copies of a queue's tables, in a schema that is in front of the others until its
 * end, and gone after its rollback. Not temporary tables: Postgres does not notice that one has come in front
 * of a table that a prepared statement knows, but it notices another search path.
 *
 * **Under concurrency.** The copies are no other transaction's, so nothing in them waits.
 *
 * @throws TypeError for tables that name their schema
 */
export async function useOwnTables(
  tx: Transaction,
  queue: Pick<Queue, 'tables' | 'limits' | 'schedules' | 'keys' | 'metrics' | 'workflows'>,
): Promise<void> {
  const tables = tablesOf(queue).map((table) => placeOf(table));
  const schema = `drizzle_queue_${globalThis.crypto.randomUUID().replaceAll('-', '')}`;
  await tx.execute(sql`create schema ${sql.identifier(schema)}`);
  for (const name of tables) {
    await tx.execute(
      sql`create table ${sql.identifier(schema)}.${sql.identifier(name)}
        (like ${sql.identifier(name)} including all)`,
    );
  }
  const front = sql`${schema}::text || ', ' || current_setting('search_path')`;
  await tx.execute(sql`select set_config('search_path', ${front}, true)`);
}

function placeOf(table: PgTable): string {
  const { name, schema } = getTableConfig(table);
  if (schema === undefined) return name;
  throw new TypeError(
    `inTransaction: the table ${schema}.${name} names its schema, so the transaction cannot have one of ` +
      'its own: give each test file a database of its own',
  );
}

import { type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { QueueError } from '../../../errors.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { type FeatureTables, namedTables, type Privilege } from '../../sql/feature-tables.ts';
import { quotedName } from '../../sql/quoted-name.ts';

/** What each worker itself does with the tables of its queue, without its handlers. */
const WORKER: Readonly<Record<keyof QueueTables, readonly Privilege[]>> = {
  queueJobs: ['select', 'update', 'delete'],
  queueResults: ['select', 'insert', 'update', 'delete'],
  queueWorkers: ['select', 'insert', 'update', 'delete'],
  queuePauses: ['select'],
};

/** What a worker does with a table whose feature does not say. */
const EVERYTHING: readonly Privilege[] = ['select', 'insert', 'update', 'delete'];

/**
 * Checks that this role may do what a worker does. Otherwise a worker that may claim but not settle would run
 * its jobs again and again.
 *
 * @throws QueueError with the missing grants, as SQL
 */
export async function checkGrants(
  db: Runner,
  tables: QueueTables,
  features: readonly FeatureTables[],
): Promise<void> {
  const rows = await queryRows(db, tables, missingGrantsQuery(tables, features));
  const [first] = rows;
  if (first === undefined) return;
  const grants = rows.map(({ privilege, name, role }) => `grant ${privilege} on ${name} to ${role};`);
  throw new QueueError(
    `The role ${first.role} lacks privileges that a worker needs. Run \`${grants.join(' ')}\``,
  );
}

/** What the current role lacks. Privileges on single columns count; delete exists only for whole rows. */
export function missingGrantsQuery(tables: QueueTables, features: readonly FeatureTables[] = []): SQL {
  const ofJobs = features.flatMap((feature) => feature.ofJobs ?? []);
  const { queueJobs, queueResults, queueWorkers, queuePauses } = tables;
  const needed = [
    ...privilegesOn(queueJobs, [...WORKER.queueJobs, ...ofJobs]),
    ...privilegesOn(queueResults, WORKER.queueResults),
    ...privilegesOn(queueWorkers, WORKER.queueWorkers),
    ...privilegesOn(queuePauses, WORKER.queuePauses),
    ...features.flatMap(({ tables, privileges }) =>
      namedTables(tables).flatMap(([name, table]) => privilegesOn(table, privileges?.[name] ?? EVERYTHING)),
    ),
  ];
  return sql`
    select quote_ident(current_user) as role, n.name, n.privilege
    from jsonb_to_recordset(${JSON.stringify(needed)}::text::jsonb)
      as n(name text, privilege text, of_columns bool)
    where not case when n.of_columns then has_any_column_privilege(n.name, n.privilege)
      else has_table_privilege(n.name, n.privilege) end`;
}

function privilegesOn(table: PgTable, privileges: readonly Privilege[]) {
  const name = quotedName(table);
  return privileges.map((privilege) => ({ name, privilege, of_columns: privilege !== 'delete' }));
}

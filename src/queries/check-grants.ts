import { type SQL, sql } from 'drizzle-orm';
import { QueueError } from '../errors.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import { quotedName } from '../sql/quoted-name.ts';

type Privilege = 'select' | 'insert' | 'update' | 'delete';

/** What a worker does with each table; the handlers' own work comes on top. */
const WORKER: Readonly<Record<keyof QueueTables, readonly Privilege[]>> = {
  queueJobs: ['select', 'update', 'delete'],
  queueResults: ['select', 'insert', 'update', 'delete'],
  queueWorkers: ['select', 'insert', 'update', 'delete'],
  queuePauses: ['select'],
};

/**
 * Checks that this role may do what a worker does. Without it a worker that may claim and not settle would run its jobs, find no
 * way to write how they ended, and run them again.
 *
 * @throws QueueError with the grants that are missing, as SQL
 */
export async function checkGrants(db: Executor, tables: QueueTables): Promise<void> {
  const rows = await queryRows(db, tables, missingGrantsQuery(tables));
  const [first] = rows;
  if (first === undefined) return;
  const grants = rows.map(({ privilege, name, role }) => `grant ${privilege} on ${name} to ${role};`);
  throw new QueueError(
    `The role ${first.role} may not do all that a worker does. Run \`${grants.join(' ')}\``,
  );
}

/** What the current role lacks. A privilege on single columns counts, except to delete, which there is for whole rows only. */
export function missingGrantsQuery(tables: QueueTables): SQL {
  const needed = Object.entries(WORKER).flatMap(([key, privileges]) =>
    // The keys are those of the tables.
    privileges.map((privilege) => ({
      name: quotedName(tables[key as keyof QueueTables]),
      privilege,
      of_columns: privilege !== 'delete',
    })),
  );
  return sql`
    select quote_ident(current_user) as role, n.name, n.privilege
    from jsonb_to_recordset(${JSON.stringify(needed)}::text::jsonb) as n(name text, privilege text, of_columns bool)
    where not case when n.of_columns then has_any_column_privilege(n.name, n.privilege)
      else has_table_privilege(n.name, n.privilege) end`;
}

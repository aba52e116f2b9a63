import { type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import { QueueError } from '../../../errors.ts';
import type { ControlTables } from '../../../features/control/index.ts';
import type { LimitTables } from '../../../features/limits/sql/grouping.ts';
import type { MetricsTables } from '../../../features/metrics/schema/index.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { quotedName } from '../../sql/quoted-name.ts';

type Privilege = 'select' | 'insert' | 'update' | 'delete';

/** The tables that a worker uses: those of schedules, limits, keys and metrics only where it has some. */
export type TablesInUse = QueueTables &
  Partial<Pick<ControlTables, 'queueSchedules' | 'queueKeys'> & LimitTables & MetricsTables>;

/** What a worker itself does with each table, without its handlers. */
const WORKER: Readonly<Record<keyof TablesInUse, readonly Privilege[]>> = {
  queueJobs: ['select', 'update', 'delete'],
  queueResults: ['select', 'insert', 'update', 'delete'],
  queueWorkers: ['select', 'insert', 'update', 'delete'],
  queuePauses: ['select'],
  queueSchedules: ['select', 'insert', 'update', 'delete'],
  queueLimits: ['select'],
  queueUsage: ['select', 'insert', 'update'],
  queueGroups: ['select', 'insert', 'update', 'delete'],
  queueHolds: ['select', 'insert', 'update', 'delete'],
  queueNotes: ['select', 'insert', 'update', 'delete'],
  // To lock a row takes the right to update it.
  queueKeys: ['select', 'update', 'delete'],
  queueMetrics: ['select', 'insert', 'update', 'delete'],
};

/** What a worker does with the tables of a feature that the core does not know. */
const EVERYTHING: readonly Privilege[] = ['select', 'insert', 'update', 'delete'];

/** Only who fires schedules enqueues. */
const FIRING: readonly Privilege[] = ['insert'];

/**
 * Checks that this role may do what a worker does. Otherwise a worker that may claim but not settle would run
 * its jobs again and again.
 *
 * @throws QueueError with the missing grants, as SQL
 */
export async function checkGrants(db: Runner, tables: TablesInUse): Promise<void> {
  const rows = await queryRows(db, tables, missingGrantsQuery(tables));
  const [first] = rows;
  if (first === undefined) return;
  const grants = rows.map(({ privilege, name, role }) => `grant ${privilege} on ${name} to ${role};`);
  throw new QueueError(
    `The role ${first.role} lacks privileges that a worker needs. Run \`${grants.join(' ')}\``,
  );
}

/** What the current role lacks. Privileges on single columns count; delete exists only for whole rows. */
export function missingGrantsQuery(tables: TablesInUse): SQL {
  const fires = tables.queueSchedules !== undefined;
  const ofFeatures = Object.keys(tables).filter((key) => !(key in WORKER));
  const all = [...Object.entries(WORKER), ...ofFeatures.map((key) => [key, EVERYTHING] as const)];
  const needed = all.flatMap(([key, privileges]) => {
    const table: PgTable | undefined = Reflect.get(tables, key);
    if (table === undefined) return [];
    const wanted = fires && key === 'queueJobs' ? [...privileges, ...FIRING] : privileges;
    return wanted.map((privilege) => ({
      name: quotedName(table),
      privilege,
      of_columns: privilege !== 'delete',
    }));
  });
  return sql`
    select quote_ident(current_user) as role, n.name, n.privilege
    from jsonb_to_recordset(${JSON.stringify(needed)}::text::jsonb)
      as n(name text, privilege text, of_columns bool)
    where not case when n.of_columns then has_any_column_privilege(n.name, n.privilege)
      else has_table_privilege(n.name, n.privilege) end`;
}

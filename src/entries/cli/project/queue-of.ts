import { sql } from 'drizzle-orm';
import { getTableConfig, type PgTable } from 'drizzle-orm/pg-core';
import {
  createQueue,
  type Database,
  limitsIn,
  type Queue,
  schedulesIn,
  workflowsIn,
} from '../../../index.ts';
import { notDeclared, strangersAmong } from '../../../internal.ts';
import type { FoundTables } from './exported-tables.ts';
import { mayHaveGroups } from './may-have-groups.ts';

/**
 * A queue over the tables of an app whose own queue is not known: with schedules, limits, keys, metrics and
 * workflows as far as this database has their tables, of the same set as its jobs.
 */
export async function queueOf(db: Database, tables: FoundTables): Promise<Queue> {
  const present = await presentTables(db, Object.values(tables));
  const has = (asked: Readonly<Record<string, PgTable>>) =>
    Object.values(asked).every((table) => present.has(table)) &&
    strangersAmong(tables.queueJobs, asked).length === 0;
  const { queueJobs, queueResults, queueWorkers, queuePauses } = tables;
  const { queueSchedules, queueLimits, queueUsage, queueGroups, queueHolds, queueNotes, queueKeys } = tables;
  const { queueMetrics, queueSteps, queueMailboxes, queueBatches, queueWaits, queueTallies } = tables;
  const ofWorkflows = { queueSteps, queueMailboxes, queueBatches, queueWaits, queueTallies };
  const ofLimits = { queueLimits, queueUsage, queueGroups, queueHolds, queueNotes };
  const limits = has(ofLimits) && limitsIn(ofLimits, notDeclared(await mayHaveGroups(db, tables)));
  return createQueue({
    tables: { queueJobs, queueResults, queueWorkers, queuePauses },
    ...(has({ queueSchedules }) && { schedules: schedulesIn(queueSchedules) }),
    ...(limits !== false && { limits }),
    ...(has({ queueKeys }) && { keys: queueKeys }),
    ...(has({ queueMetrics }) && { metrics: queueMetrics }),
    ...(has(ofWorkflows) && { workflows: workflowsIn(ofWorkflows) }),
  }) as unknown as Queue; // What it has is found out at run time.
}

async function presentTables(db: Database, tables: readonly PgTable[]): Promise<Set<PgTable>> {
  const names = tables.map(nameOf);
  const asked = sql.join(
    names.map((name) => sql`(to_regclass(${name}) is not null)::int::float8`),
    sql` , `,
  );
  const answer: unknown = await db.execute(sql`select array[${asked}]::float8[]::text as found`);
  const rows: unknown = Array.isArray(answer) ? answer : Reflect.get(Object(answer), 'rows');
  const [row]: readonly unknown[] = Array.isArray(rows) ? rows : [];
  const found = String(Reflect.get(Object(row), 'found'))
    .replaceAll(/[{}]/g, '')
    .split(',');
  return new Set(tables.filter((_, index) => found[index] === '1'));
}

/** As PostgreSQL reads it. */
function nameOf(table: PgTable): string {
  const { schema, name } = getTableConfig(table);
  const quoted = (part: string) => `"${part.replaceAll('"', '""')}"`;
  return schema === undefined ? quoted(name) : `${quoted(schema)}.${quoted(name)}`;
}

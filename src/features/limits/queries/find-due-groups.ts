import { type SQL, sql } from 'drizzle-orm';
import { type DueAnswer, toDueAnswer } from '../../../core/queries/claim/find-due.ts';
import { epochMs } from '../../../core/sql/epoch-ms.ts';
import type { RawRow, Runner } from '../../../core/sql/executor.ts';
import { perStatement, queueOf } from '../../../core/sql/one-queue.ts';
import { planAnew } from '../../../core/sql/plan-anew.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';

/**
 * Asks for queues whose jobs are in groups when a claim is next worth its statements: `findDue` for them.
 *
 * **Under concurrency.** A plain read, which locks nothing. Of each queue it reads the first note and the
 * first group, so it costs the same for any number of groups and jobs.
 */
export async function findDueGroups(
  runner: Runner,
  tables: GroupTables,
  queues: readonly string[],
): Promise<DueAnswer[]> {
  const rows: RawRow[] = [];
  const questions = queues.map((queue) => ({ queue }));
  for (const looks of perStatement(tables, questions)) {
    rows.push(...(await queryLimitRows(runner, tables, findDueGroupsQuery(tables, looks))));
  }
  return rows.map(toDueAnswer);
}

/** @insteadOnCitus (plain) findDueGroupsQuery, of one queue */
export function findDueGroupsQuery(
  { queueGroups, queueNotes }: GroupTables,
  looks: readonly { readonly queue: string }[],
): SQL {
  const queue = queueOf(looks, 'i.queue');
  return sql`
    select i.queue, ${epochMs('least(n.due_at, g.ready_at)')} as due_at,
      ${epochMs('statement_timestamp()')} as now
    from ${planAnew()}
    cross join jsonb_to_recordset(${JSON.stringify(looks)}::text::jsonb) as i(queue text)
    left join lateral (
      select n.due_at from ${queueNotes} as n where n.queue = ${queue} order by n.due_at limit 1
    ) as n on true
    left join lateral (
      select greatest(g.ready_at, statement_timestamp()) as ready_at from ${queueGroups} as g
      where g.queue = ${queue} and g.turn >= 0 and g.ready_at < 'infinity'
      order by g.ready_at limit 1
    ) as g on true`;
}

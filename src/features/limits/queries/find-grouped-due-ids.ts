import { type SQL, sql } from 'drizzle-orm';
import type { DueIdsQuestion } from '../../../core/queries/claim/find-due-ids.ts';
import type { Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { isNotAmong, servedKind } from '../../../core/sql/served-kind.ts';
import { isDue } from '../sql/due-in-group.ts';
import { isOfGroup } from '../sql/group-rows.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';

/**
 * The ids of due jobs of the groups whose turn it is, and of groups that are new.
 *
 * **Under concurrency.** A plain read, as `findDueIds`.
 */
export async function findGroupedDueIds(
  db: Runner,
  tables: GroupTables,
  question: DueIdsQuestion,
): Promise<number[]> {
  const query = findGroupedDueIdsQuery(tables, question);
  const rows = await queryLimitRows(db, tables, query);
  return rows.map(({ id }) => Number(id));
}

/** The claim looks at as many groups as this, and at the first jobs of each. */
export function findGroupedDueIdsQuery(
  tables: GroupTables,
  { queue, kinds, limit, without }: DueIdsQuestion,
): SQL {
  const { queueJobs, queueGroups, queueNotes } = tables;
  return sql`
    select j.id from (
      (
        select g.group_key from ${queueGroups} as g
        where g.queue = ${queue} and g.turn >= 0 and g.ready_at <= statement_timestamp()
        order by g.ready_at, g.turn limit ${limit}::int8 * 2 + 32
      )
      union
      (
        select unnest(n.group_keys) from ${queueNotes} as n
        where n.queue = ${queue} and n.due_at <= statement_timestamp()
        limit ${limit}::int8 * 2 + 32
      )
    ) as g
    cross join lateral (
      select j.id from ${queueJobs} as j
      where ${isOfGroup(queue, sql`g.group_key`)}
        and ${isDue(tables, servedKind(kinds))}
        and ${isNotAmong(arrayText(without))}
      order by j.priority, j.run_at, j.id limit ${limit}
    ) as j
    limit ${limit}::int8 * 4`;
}

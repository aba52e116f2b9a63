import { type SQL, sql } from 'drizzle-orm';
import type { DueIdsQuestion } from '../../../core/queries/claim/find-due-ids.ts';
import type { Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import { planAnew } from '../../../core/sql/plan-anew.ts';
import { isNotAmong, servedKind } from '../../../core/sql/served-kind.ts';
import { hasJobsFor, isDue } from '../sql/due-in-group.ts';
import { isOfGroup } from '../sql/group-rows.ts';
import { MOST_SOUGHT } from '../sql/groups-in-turn.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';

export interface GroupedDueIdsQuestion extends DueIdsQuestion {
  /** Whether the jobs of a group run one after the other. */
  readonly serial: boolean;
  /** How many groups of each lane the claim has passed without a look. */
  readonly passed: number;
}

/** So many jobs of each group come before later ones of any. */
const OF_ONE = sql.raw('4');

/**
 * The ids of due jobs that a claim may have met: the first few of each group, in the order of the groups.
 * Where a row refuses them, claims ask for fewer and fewer jobs: the last one takes a few of a few groups.
 *
 * **Under concurrency.** A plain read, as `findDueIds`.
 */
export async function findGroupedDueIds(
  db: Runner,
  tables: GroupTables,
  question: GroupedDueIdsQuestion,
): Promise<number[]> {
  const query = findGroupedDueIdsQuery(tables, question);
  const rows = await queryLimitRows(db, tables, query);
  return rows.map(({ id }) => Number(id));
}

/** It finds groups as a claim that seeks does: in each lane the next ones in which there is a job for it. */
export function findGroupedDueIdsQuery(
  tables: GroupTables,
  { queue, kinds, limit, without, serial, passed }: GroupedDueIdsQuestion,
): SQL {
  const { queueJobs, queueGroups, queueNotes } = tables;
  const isTaken = sql`${servedKind(kinds)} and ${isNotAmong(arrayText(without))}`;
  const most = sql`${limit}::int8`;
  const ofGroups = (isReady: SQL, order: SQL) => sql`
            select g.group_key, ${order} as place from ${queueGroups} as g
            where g.queue = ${queue} and g.turn >= 0 and ${isReady}
            order by ${order} limit ${sql.raw(String(MOST_SOUGHT))} offset ${passed}::int8`;
  const ofNotes = sql`
            select n.group_key, min(n.place) as place from (
              select unnest(n.group_keys) as group_key, row_number() over (order by n.due_at, n.id) as place
              from ${queueNotes} as n
              where n.queue = ${queue} and n.due_at <= statement_timestamp()
              order by n.due_at, n.id limit ${most}
            ) as n
            group by n.group_key order by min(n.place)`;
  const lanes = [
    ofGroups(sql`g.ready_at = '-infinity'`, sql`g.turn`),
    ofGroups(sql`g.ready_at > '-infinity' and g.ready_at <= statement_timestamp()`, sql`g.ready_at`),
    ofNotes,
  ].map(
    (groups) => sql`
        select l.group_key, row_number() over (order by l.place) as place from (
          select l.* from (${groups}
          ) as l
          where ${hasJobsFor(tables, { queue, group: sql`l.group_key`, serial, isTaken })} limit ${most}
        ) as l`,
  );
  return sql`
    with ready as materialized (
      select l.group_key, min(l.place) as place from ${planAnew()}
      cross join (${sql.join(
        lanes,
        sql`
        union all`,
      )}
      ) as l
      group by l.group_key
    )
    select j.id from (
      select g.*, greatest(${most} * 4 / count(*) over (), ${OF_ONE}) as most from ready as g
    ) as g
    cross join lateral (
      select j.id, row_number() over (order by j.priority, j.run_at, j.id) as n from ${queueJobs} as j
      where ${isOfGroup(queue, sql`g.group_key`)} and ${isDue(tables, isTaken)}
      order by j.priority, j.run_at, j.id limit g.most
    ) as j
    order by (j.n - 1) / ${OF_ONE}, g.place, j.n limit ${most} * 4`;
}

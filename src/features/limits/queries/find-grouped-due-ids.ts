import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import { KeptStatements } from '../../../core/sql/kept-statement.ts';
import { isNotAmong, servedKindOf } from '../../../core/sql/served-kind.ts';
import { isDue } from '../sql/due-in-group.ts';
import {
  type GroupClaim,
  type GroupClaimPlace,
  type GroupClaimShape,
  groupShapeOf,
  groupValuesOf,
} from '../sql/group-claim.ts';
import { isOfGroup } from '../sql/group-rows.ts';
import { groupsInTurn } from '../sql/groups-in-turn.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';

/** So many jobs of each group come before later ones of any. */
const OF_ONE = sql.raw('4');

/**
 * The ids of due jobs that a claim may have met: the first few of each group whose turn it is, in the order
 * of the groups. Where a row refuses them, claims ask for fewer and fewer jobs: the last one takes a few of a
 * few groups.
 *
 * **Under concurrency.** It locks the notes and groups that the claim would, until it ends. Those that others
 * have locked are left out, and jobs that they have locked are not.
 */
export async function findGroupedDueIds(
  db: Runner,
  tables: GroupTables,
  claim: GroupClaim,
): Promise<number[]> {
  const rows = await queryLimitRows(db, tables, findGroupedDueIdsQuery(tables, claim));
  return rows.map(({ id }) => Number(id));
}

const statements = new KeptStatements(statement);

export function findGroupedDueIdsQuery(tables: GroupTables, claim: GroupClaim): SQL {
  return statements.of(tables, groupShapeOf(claim)).with(groupValuesOf(claim));
}

function statement(tables: GroupTables, shape: GroupClaimShape, place: GroupClaimPlace): SQL {
  const queue = place('queue');
  const most = sql`${place('limit')}::int8`;
  const isTaken = sql`${servedKindOf(place('kinds'))} and ${isNotAmong(place('without'))}`;
  return sql`
    with ${groupsInTurn(tables, shape, place)}
    select j.id from (
      select l.group_key, l.place, greatest(${most} * 4 / count(*) over (), ${OF_ONE}) as most
      from locked as l
    ) as g
    cross join lateral (
      select j.id, row_number() over (order by j.priority, j.run_at, j.id) as n from ${tables.queueJobs} as j
      where ${isOfGroup(queue, sql`g.group_key`)} and ${isDue(tables, isTaken)}
      order by j.priority, j.run_at, j.id limit g.most
    ) as j
    order by (j.n - 1) / ${OF_ONE}, g.place, j.n limit ${most} * 4`;
}

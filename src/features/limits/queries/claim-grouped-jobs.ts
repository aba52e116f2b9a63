import { type SQL, sql } from 'drizzle-orm';
import { claimedAt, NEXT_ATTEMPT } from '../../../core/sql/claim-beginning.ts';
import {
  type ClaimedJob,
  claimedColumns,
  claimedRows,
  forgetRows,
  toClaimedJobs,
} from '../../../core/sql/claimed-job.ts';
import type { RawRow, Runner } from '../../../core/sql/executor.ts';
import { faultPoint } from '../../../core/sql/fault-point.ts';
import { handOver } from '../../../core/sql/hold-end.ts';
import { KeptStatements, type Value } from '../../../core/sql/kept-statement.ts';
import { areJobsSmall, isOf, type TableSize, tableSizes } from '../../../core/sql/table-size.ts';
import {
  type GroupClaim,
  type GroupClaimPlace,
  type GroupClaimShape,
  groupShapeOf,
  groupValuesOf,
} from '../sql/group-claim.ts';
import { isUpheld } from '../sql/group-rows.ts';
import { areUnsought, groupsInTurn, notesRead } from '../sql/groups-in-turn.ts';
import { jobsOfGroups } from '../sql/jobs-of-groups.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';

/** What a claim tells of the groups and the notes. */
export type Sign =
  /** Groups are left that may have jobs to claim now. */
  | 'more'
  /** It has taken nothing of a group that has due jobs: others serve them, or they have to wait. */
  | 'passed'
  /** It has taken nothing of a group that leaves the ring for it: the next claim meets others. */
  | 'aside'
  /** It has sought among as many groups as it may, and there are others behind these. */
  | 'unsought'
  /** Notes that are due are left: such that it could not use, or that others have locked. */
  | 'left'
  /** It has used a note. */
  | 'used'
  /** It has read as many notes as it may, or could not use some. */
  | 'crowded'
  /** It has used at least a third of what the notes say that it has read. */
  | 'usedMany'
  /** Most of what they say is about the same groups. */
  | 'repeated'
  /** Only so many jobs may be held of one of the groups that it has looked at. */
  | 'bounded'
  /** It has left a group because that has a rate. */
  | 'rated'
  /** Of `claimGroupsByKeptPlan`: the tables are of the size that was asked for; that of the jobs is small. */
  | TableSize
  | 'smallJobs';

export interface GroupClaimResult {
  /** In the order of the groups' turns; those of a group are in their own order. */
  readonly jobs: readonly ClaimedJob[];
  readonly signs: ReadonlySet<Sign>;
}

/**
 * Takes up to `limit` due jobs of a queue whose jobs are in groups: of each group whose turn it is its share,
 * as far as its limits allow. It uses the first notes that are due, about as many as it may take jobs.
 *
 * **Under concurrency.** No limit is ever exceeded. Groups that another claim has locked are skipped. How
 * many jobs of a group are held is counted in this statement's snapshot, by rows that only claims of this
 * group write. The guard (`turn` as the snapshot has it) leaves out a group that another statement has
 * changed since. An attempt that ends meanwhile still counts. Jobs whose worker is gone do not count, and are
 * due. What is used of a group's rate is read from its locked row. A job counts for as long as it may begin,
 * and a window more, so that no window sees more handlers begin than the rate allows. As in `claimJobs`, no
 * job is given to two claims.
 *
 * A group that is new is inserted, and its jobs are taken only if that succeeds: a claim that makes the same
 * group at the same time is waited for, and leaves nothing to take unless it is rolled back. Notes are used
 * up where this statement has changed the row of their group, or made it, or where nothing is due. Those that
 * another statement has locked are passed over; the others stay.
 *
 * A group in which nothing more is due leaves the ring until a note says so. One with a due job that this
 * claim could not take stays there.
 */
export async function claimGroupedJobs(
  db: Runner,
  tables: GroupTables,
  claim: GroupClaim,
): Promise<GroupClaimResult> {
  return resultOf(tables, claim, await send(db, tables, claim));
}

/**
 * The most groups that {@link claimGroupsByKeptPlan} looks at. Its plan may read a small table for each of
 * them. Where the table of the jobs is small, it brings no more jobs either, since it may read that for each
 * job.
 */
export const FEW: Readonly<Record<TableSize, number>> = { small: 8, grown: 16 };

/** Why {@link claimGroupsByKeptPlan} has claimed nothing. */
export interface OtherSizes {
  /** Whether the table of the jobs is small. Where that is as it has to be, another one is too large. */
  readonly areJobsSmall: boolean;
}

/**
 * The same for a few groups, by a prepared statement that Postgres plans once: to plan it takes 3 ms, and to
 * claim a job half a millisecond. Its plan may be for empty tables, and read all of a small one for each
 * group. Jobs are found by an index where their table is grown.
 *
 * @param size of the table of the jobs; the other tables have to be small
 */
export async function claimGroupsByKeptPlan(
  db: Runner,
  tables: GroupTables,
  claim: GroupClaim,
  size: TableSize,
): Promise<GroupClaimResult | OtherSizes> {
  const few = FEW[size];
  const limit = size === 'small' ? Math.min(claim.limit, few) : claim.limit;
  const ofFew = { ...claim, limit, groups: Math.min(claim.limit, few), ifTablesAre: size };
  const rows = await send(db, tables, ofFew);
  const signs = signsOf(rows);
  return signs.has(size) ? resultOf(tables, ofFew, rows) : { areJobsSmall: signs.has('smallJobs') };
}

async function send(db: Runner, tables: GroupTables, claim: GroupClaim): Promise<RawRow[]> {
  const rows = await queryLimitRows(db, tables, claimGroupedJobsQuery(tables, claim));
  await faultPoint('claim: answered');
  return rows;
}

function signsOf([row]: readonly RawRow[]): ReadonlySet<Sign> {
  return new Set(String(row?.signs ?? '').split(' ') as Sign[]);
}

function resultOf(tables: GroupTables, { queue, starts }: GroupClaim, rows: RawRow[]): GroupClaimResult {
  const taken = rows.filter(({ id }) => id !== null).sort((a, b) => Number(a.rank) - Number(b.rank));
  const jobs = toClaimedJobs(tables.queueJobs, taken, queue).map((job, at) => {
    const { group_key, rate_per_ms: perMs } = taken[at] ?? {};
    const group = String(group_key);
    if (starts === undefined || perMs === null) return Object.assign(job, { group });
    return Object.assign(job, { group, beginTime: starts.beginTime(Number(perMs)) });
  });
  const signs = signsOf(rows);
  forgetRows(rows);
  return { jobs, signs };
}

const statements = new KeptStatements(groupClaimStatement);

/**
 * The last join is a full one, since Postgres never makes a nested loop of that. It expects one row of each
 * side where the last ANALYZE saw a small table, so a claim of 4,000 compared all with all, for 5 s.
 *
 * @endsHold the death of a worker, whose job it takes over
 * @insteadOnCitus an error
 */
export function claimGroupedJobsQuery(tables: GroupTables, claim: GroupClaim): SQL {
  return statements.of(tables, groupShapeOf(claim)).with(groupValuesOf(claim));
}

function groupClaimStatement(tables: GroupTables, shape: GroupClaimShape, place: GroupClaimPlace): SQL {
  const { rated, withCosts, ifTablesAre } = shape;
  const queue = place('queue');
  const ofSize = ifTablesAre ? sql` and ${isOf(ifTablesAre)}` : sql``;
  return handOver(tables, {
    ctes: sql`
    with ${ifTablesAre ? sizesOf(tables, ifTablesAre) : sql``}${groupsInTurn(tables, shape, place)},
    ${jobsOfGroups(tables, shape, place)}`,
    holder: sql`${place('workerId')}::int8`,
    claimedAt: claimedAt(NEXT_ATTEMPT, { first: place('first') }),
    set: sql`attempt = ${NEXT_ATTEMPT}, fence = j.fence + 1, waiting_key = null`,
    where: sql`j.queue = ${queue} and j.id = any(array(select id from taken))${ofSize}`,
    returning: claimedColumns(tables, withCosts),
    answer: {
      name: 'claimed',
      select: sql`${heedNotes(tables, queue)}${writes(tables, queue, ofSize)}
    select one.signs, w.rank, w.group_key${rated ? sql`, w.rate_per_ms` : sql``}, a.*
    from (select ${signs(tables, shape, place)} as signs) as one
    left join (taken as w full join (${claimedRows(tables, { withCosts })}) as a on a.id = w.id) on true`,
    },
  });
}

/**
 * Groups go on, and holds whose time has passed are removed. `IS TRUE` keeps the pairs from
 * being joined: they are hashed. It also keeps the groups from being found by their queue alone, and compared
 * with all that turn. A hold that an open transaction removes is left to it.
 */
function writes(tables: GroupTables, queue: Value<string>, ofSize: SQL): SQL {
  const { queueGroups, queueHolds } = tables;
  return sql`,
    turned as (
      update ${queueGroups} as g set turn = t.turn, ready_at = t.ready_at, rate_used = t.rate_used,
        held = t.held, bounded_since = t.bounded_since
      from turning as t
      where g.ctid = t.at and (g.queue = ${queue} and g.group_key = t.group_key) is true${ofSize}
    ),
    over as materialized (
      select h.group_key, h.job_id from ${queueHolds} as h
      where h.queue = ${queue} and (h.until <= statement_timestamp() or not ${isUpheld(tables)})
        and h.group_key = any(array(select group_key from blocking where until <= statement_timestamp()))
      for update skip locked
    ),
    swept as (
      delete from ${queueHolds} as h
      where h.queue = ${queue} and h.group_key = any(array(select group_key from over))
        and ((h.group_key, h.job_id) in (select group_key, job_id from over)) is true
    )`;
}

/** What is told of the groups, as words in one column: each column more takes time for each job. */
function signs(
  tables: GroupTables,
  { rated, seeks, ifTablesAre }: GroupClaimShape,
  place: GroupClaimPlace,
): SQL {
  const { queueNotes } = tables;
  const queue = place('queue');
  const noneTaken = sql`t.group_key not in (select w.group_key from taken as w)`;
  const more = sql`exists (select from turning as t where t.ready_at = '-infinity')
          or (select count(*) from seen) > (select count(*) from turning) or exists (select from beaten)`;
  const isUnused = sql`exists (select from unused)`;
  const read = sql`(select coalesce(sum(offered), 0) from heeded)`;
  const asked = sql`(select count(*) from asked)`;
  const used = sql`${asked} - (select count(*) from unused)`;
  const told: Partial<Record<Sign, SQL>> = {
    more,
    passed: sql`exists (select from turning as t where t.ready_at = '-infinity' and ${noneTaken})`,
    aside: sql`exists (select from turning as t where t.ready_at > '-infinity' and ${noneTaken})`,
    left: sql`${isUnused} or exists (
          select from ${queueNotes} as n
          where n.queue = ${queue} and n.due_at <= statement_timestamp() and n.id not in (select id from free)
        )`,
    used: sql`${used} > 0`,
    crowded: sql`${isUnused} or ${read} >= ${notesRead(place)}`,
    // Where the two lanes take turns, it can be half of them.
    usedMany: sql`3 * (${used}) >= ${read}`,
    repeated: sql`2 * ${asked} < ${read}`,
    bounded: sql`exists (select from turning as t where t.bounded_since is not null)`,
    ...(seeks && { unsought: areUnsought(tables, place) }),
    ...(!rated && { rated: sql`exists (select from open as o where o.rate_limit is not null)` }),
    ...(ifTablesAre && { [ifTablesAre]: isOf(ifTablesAre), smallJobs: areJobsSmall }),
  };
  const words = Object.entries(told).map(
    ([word, when]) => sql`case when ${when} then ${sql.raw(`'${word}'`)} end`,
  );
  return sql`concat_ws(' ', ${sql.join(
    words,
    sql`,
        `,
  )})`;
}

/** Of all that a claim may read as often as there are groups, only the jobs may be many. */
function sizesOf({ queueJobs, ...tables }: GroupTables, size: TableSize): SQL {
  const { queueGroups, queueNotes, queueHolds, queueLimits } = tables;
  return sql`${tableSizes(queueJobs, [queueGroups, queueNotes, queueHolds, queueLimits], size)},
    `;
}

/**
 * A group of a note is done with where this claim has changed its row or made it, and where nothing is due: a
 * job that is due later, or committed later, has a note of its own. The other groups stay noted.
 */
function heedNotes({ queueNotes }: GroupTables, queue: Value<string>): SQL {
  return sql`,
    unused as materialized (
      select a.group_key from asked as a
      where a.group_key not in (select t.group_key from turning as t)
        and a.group_key not in (select i.group_key from idle as i where not i.waits)
      union all
      select b.group_key from beaten as b
    ),
    heeded as materialized (
      select n.at, n.id, n.due_at, cardinality(n.group_keys) as offered, array(
          select k from unnest(n.group_keys) as k where k in (select u.group_key from unused as u)
        ) as later
      from free as n
    ),
    removed as (
      delete from ${queueNotes} as n using heeded as h
      where n.ctid = h.at and n.queue = ${queue} and n.id = h.id and cardinality(h.later) < h.offered
    ),
    kept as (
      insert into ${queueNotes} (queue, due_at, group_keys)
      select ${queue}::text, h.due_at, h.later from heeded as h
      where cardinality(h.later) between 1 and h.offered - 1
    )`;
}

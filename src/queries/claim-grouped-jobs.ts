import { type SQL, sql } from 'drizzle-orm';
import { claimedAt } from '../sql/claim-beginning.ts';
import { type ClaimedJob, claimedColumns, claimedRows, toClaimedJob } from '../sql/claimed-job.ts';
import { CONTROL_ENTRY } from '../sql/control-entry.ts';
import { dueInGroup } from '../sql/due-in-group.ts';
import { queryRows, type RawRow, type Runner } from '../sql/executor.ts';
import { faultPoint } from '../sql/fault-point.ts';
import { isFree } from '../sql/group-hold.ts';
import type { GroupTables } from '../sql/grouping.ts';
import { endHolds } from '../sql/hold-end.ts';
import { planAnew } from '../sql/plan-anew.ts';
import { rateFreeAt, rateWindow, rateWith } from '../sql/rate-used.ts';
import { servedKind } from '../sql/served-kind.ts';

/** At most `limit` starts in any window of `perMs` milliseconds. */
export interface ClaimRate {
  readonly limit: number;
  readonly perMs: number;
}

/** The limits of a queue's groups, as the code declares them. */
export interface ClaimLimits {
  readonly concurrency?: number | undefined;
  readonly rate?: ClaimRate | undefined;
  /** Where the jobs of a group run one after the other: the most of one group that a claim takes. */
  readonly run: number | undefined;
  /** Of the whole queue. */
  readonly queueRate?: ClaimRate | undefined;
  /** Of its kinds. */
  readonly kindRates: ReadonlyMap<string, ClaimRate>;
}

export interface GroupClaim {
  readonly queue: string;
  readonly kinds: readonly string[];
  /** The most jobs to claim; fewer when their payloads are large. */
  readonly limit: number;
  readonly limits: ClaimLimits;
  /** How many of the first begin with the claim: see `claimJobs`. @default undefined all of them */
  readonly beginning?: 0 | 1 | undefined;
  readonly workerId: number;
}

export interface GroupClaimResult {
  /** In the order of the groups' turns; those of a group are in their own order. */
  readonly jobs: readonly ClaimedJob[];
  /** Whether groups are left that may have jobs to claim now. */
  readonly more: boolean;
  /** The rate of the queue or of a kind is used up: how long until some of it is free again. */
  readonly waitMs: number | undefined;
}

/** As in `claimJobs`: it stops at the job that takes it above this. */
const MAX_CLAIM_BYTES = 8 * 1024 * 1024;
/** How many jobs that it may not take (of other kinds, or locked) a group's claim looks past. */
const LOOK_PAST = 100;

/**
 * Takes up to `limit` due jobs of a queue whose jobs are in groups: of each group whose turn it is its share,
 * as far as its limits allow.
 *
 * **Under concurrency.** No limit is ever exceeded. Groups that another claim has locked are skipped. How many
 * jobs of a group are held is counted in this statement's snapshot, by rows that only claims of this group
 * write; the guard (`turn` as the snapshot has it) leaves out a group that another statement has changed since.
 * An attempt that ends meanwhile still counts. Jobs whose worker is gone do not count, and are due. What is
 * used of a rate is read from a locked row. As in `claimJobs`, no job is given to two claims.
 *
 * A group in which nothing more is due leaves the ring until a note says so. One with a due job that this
 * claim could not take stays there.
 */
export async function claimGroupedJobs(
  db: Runner,
  tables: GroupTables,
  claim: GroupClaim,
): Promise<GroupClaimResult> {
  const rows = await queryRows(db, tables, claimGroupedJobsQuery(tables, claim), { entry: CONTROL_ENTRY });
  await faultPoint('claim: answered');
  const [first] = rows;
  const jobs = rows
    .filter(({ id }) => id !== null)
    .sort((a, b) => Number(a.rank) - Number(b.rank))
    .map((row) => toGroupedJob(tables, row, claim.queue));
  const waitMs = first?.wait_ms === null || first === undefined ? undefined : Number(first.wait_ms);
  return { jobs, more: first?.more === true, waitMs };
}

function toGroupedJob({ queueJobs }: GroupTables, row: RawRow, queue: string): ClaimedJob {
  return { ...toClaimedJob(queueJobs, row, queue), group: String(row.group_key) };
}

export function claimGroupedJobsQuery(tables: GroupTables, claim: GroupClaim): SQL {
  const { queueJobs } = tables;
  const { queue, limits, workerId } = claim;
  const rated = limits.queueRate !== undefined || limits.kindRates.size > 0;
  const attempt = sql`j.attempt + (j.worker_id is null or j.claimed_at is not null)::int4`;
  return endHolds(tables, {
    queue,
    ctes: sql`
    with ${groupsInTurn(tables, claim)}${rated ? rates(tables, claim) : sql``},${jobsOfGroups(tables, claim, rated)}`,
    change: {
      holder: sql`${workerId}::int8`,
      claimedAt: claimedAt(attempt, claim.beginning),
      set: sql`attempt = ${attempt}, fence = j.fence + 1, waiting_key = null`,
    },
    where: sql`j.queue = ${queue} and j.id = any(array(select id from within))`,
    returning: claimedColumns(queueJobs),
    answer: {
      name: 'claimed',
      select: sql`${writes(tables, claim, rated)}
    select exists (select from turning as t where t.ready_at = '-infinity') or
        (select count(*) from seen) > (select count(*) from turning) as more,
      ${rated ? sql`(select max(s.wait_ms) from spent as s where s.cut)` : sql`null`} as wait_ms,
      w.rank, w.group_key, a.*
    from (select 1) as one
    left join (within as w join (${claimedRows(queueJobs)}) as a on a.id = w.id) on true`,
    },
  });
}

/**
 * Locks the groups whose turn it is, in two lanes that take turns: the ring, by turn, and groups that were
 * idle, by how long they have been ready. `open`: their shares of this claim, and the room that their limits
 * leave, in jobs and in weights.
 */
function groupsInTurn(tables: GroupTables, { queue, limit, limits }: GroupClaim): SQL {
  const { queueJobs, queueGroups, queueHolds, queueLimits, queueWorkers } = tables;
  const { concurrency = null, rate, run } = limits;
  const inRing = sql`g.queue = ${queue} and g.turn >= 0`;
  return sql`seen as materialized (
      (select g.group_key, g.turn, g.ready_at, row_number() over (order by g.turn) * 2 + 1 as place
        from ${planAnew()} cross join ${queueGroups} as g
        where ${inRing} and g.ready_at = '-infinity'
        order by g.turn limit (select ${limit}::int8 * 2 + 32))
      union all
      (select g.group_key, g.turn, g.ready_at, row_number() over (order by g.ready_at) * 2 as place
        from ${queueGroups} as g
        where ${inRing} and g.ready_at > '-infinity' and g.ready_at <= statement_timestamp()
        order by g.ready_at limit (select ${limit}::int8 + 8))
    ),
    ring as materialized (
      select coalesce(min(s.turn) filter (where s.ready_at = '-infinity'), (
        select g.turn from ${queueGroups} as g
        where ${inRing} and g.ready_at = 'infinity' order by g.turn desc limit 1
      ), 0) as turn from seen as s
    ),
    every as materialized (
      select max(l.concurrency) as concurrency, max(l.rate_limit) as rate_limit,
        max(l.rate_per_ms) as rate_per_ms, max(l.weight) as weight
      from ${queueLimits} as l where l.queue = ${queue} and l.kind = '' and l.group_key = '*'
    ),
    locked as materialized (
      select s.place, s.group_key, g.turn, g.rate_used
      from (select * from seen order by place) as s cross join lateral (
        select g.turn, g.rate_used from ${queueGroups} as g
        where g.queue = ${queue} and g.group_key = s.group_key and g.turn = s.turn
        for no key update skip locked
      ) as g
      limit (select ${limit}::int8)
    ),
    ruled as materialized (
      select l.*, coalesce(o.weight, e.weight, 1) as share_of,
        ${run !== undefined ? sql`1` : sql`coalesce(o.concurrency, e.concurrency, ${concurrency}::int4)`} as concurrency,
        coalesce(o.rate_limit, e.rate_limit, ${rate?.limit ?? null}::int4) as rate_limit,
        coalesce(o.rate_per_ms, e.rate_per_ms, ${rate?.perMs ?? null}::int8) as rate_per_ms
      from locked as l cross join every as e left join ${queueLimits} as o
        on o.queue = ${queue} and o.kind = '' and o.group_key = l.group_key
    ),
    counted as materialized (
      select l.*, u.slot, u.used, u.oldest, u.kept, h.held, h.over,
        (round(${limit}::float8 * sum(l.share_of) over w / sum(l.share_of) over ())
          - round(${limit}::float8 * (sum(l.share_of) over w - l.share_of) / sum(l.share_of) over ()))::int8
          as share
      from ruled as l
      cross join lateral ${rateWindow(sql`l.rate_used`, sql`l.rate_per_ms`)} as u
      cross join lateral (
        select count(*) filter (where x.counts) as held, array_agg(x.job_id) filter (where not x.counts) as over
        from (
          select h.job_id, coalesce(h.until > statement_timestamp(), false) or coalesce((
              select j.worker_id from ${queueJobs} as j where j.queue = ${queue} and j.id = h.job_id
            ) in (select w.id from ${queueWorkers} as w), false) as counts
          from ${queueHolds} as h
          where h.queue = ${queue} and h.group_key = l.group_key
          offset 0
        ) as x
      ) as h
      window w as (order by l.place rows unbounded preceding)
    ),
    open as materialized (
      select c.*, ${
        run === undefined
          ? sql`least(c.share, c.concurrency - c.held)`
          : sql`case when c.held > 0 then 0 else least(c.share, ${run}::int8) end`
      } as room, c.rate_limit - c.used as budget
      from counted as c where c.share > 0
    )`;
}

/** What is used of the rates of the queue and its kinds, locked: claims of one queue go one by one here. */
function rates({ queueUsage, queueLimits }: GroupTables, { queue, limits }: GroupClaim): SQL {
  const declared = [
    ...(limits.queueRate === undefined ? [] : [['', limits.queueRate] as const]),
    ...limits.kindRates,
  ].map(([kind, { limit, perMs }]) => ({ kind, rate_limit: limit, rate_per_ms: perMs }));
  return sql`,
    usage as materialized (
      select u.kind, u.rate_used from ${queueUsage} as u
      where u.queue = ${queue} and u.kind in (
        select d.kind from jsonb_to_recordset(${JSON.stringify(declared)}::text::jsonb) as d(kind text))
      order by u.kind for no key update
    ),
    budgets as materialized (
      select d.kind, d.rate_limit, d.rate_per_ms, x.slot, x.oldest, x.kept,
        case when u.kind is null then 0 else d.rate_limit - x.used end as budget
      from (
        select d.kind, coalesce(l.rate_limit, d.rate_limit) as rate_limit,
          coalesce(l.rate_per_ms, d.rate_per_ms) as rate_per_ms
        from jsonb_to_recordset(${JSON.stringify(declared)}::text::jsonb)
          as d(kind text, rate_limit int4, rate_per_ms int8)
        left join ${queueLimits} as l on l.queue = ${queue} and l.kind = d.kind and l.group_key = ''
      ) as d
      left join usage as u on u.kind = d.kind
      cross join lateral ${rateWindow(sql`u.rate_used`, sql`d.rate_per_ms`)} as x
    )`;
}

/**
 * `within`: the jobs to claim, in their order, and `turning`: what becomes of the groups. Neither joins CTEs with
 * each other. Postgres expects as few groups as there were at the last ANALYZE, so it would compare all with all.
 */
function jobsOfGroups(tables: GroupTables, { queue, kinds, limits }: GroupClaim, rated: boolean): SQL {
  const serial = limits.run !== undefined;
  const { queueJobs } = tables;
  const inGroup = sql`j.queue = ${queue} and j.group_key = c.group_key and j.group_key is not null`;
  const due = sql`j.run_at <= statement_timestamp() and ${isFree(tables)}`;
  const next = (most: SQL) => dueInGroup(tables, { queue, group: sql`c.group_key`, most });
  const lock = sql`
          select j.id, j.kind, j.weight::int8, pg_column_size(j.payload) as bytes from ${queueJobs} as j
          where j.id = k.id and ${inGroup} and ${due} and ${servedKind(kinds)}
          for no key update skip locked`;
  const most = sql`least(c.room, c.budget)`;
  // One after the other: none before the one that another transaction has locked, or that others serve.
  const takeInOrder = sql`
        select f.*, k.n from (
          select k.id, row_number() over () as n from (${next(most)}) as k
        ) as k
        left join lateral (${lock}) as f on true`;
  const take = sql`
        select f.*, row_number() over () as n from (
          select f.* from (${next(sql`${most} + ${sql.raw(String(LOOK_PAST))}`)}) as k
          cross join lateral (${lock}) as f
          limit ${most}
        ) as f`;
  const overBudget = sql`sum(least(j.weight, c.rate_limit)) over (partition by c.group_key order by j.n) > c.budget`;
  return sql`
    found as materialized (
      select c.place, c.group_key, j.*, least(j.weight, c.rate_limit) as cost, coalesce(${overBudget}, false) as cut
      from open as c cross join lateral (${serial ? takeInOrder : take}
      ) as j
      where c.room > 0
    ),
    wanted as materialized (
      select f.*, row_number() over (order by f.place, f.n) as rank${
        serial
          ? sql`,
        bool_and(f.id is not null) over (partition by f.group_key order by f.n) as unbroken`
          : sql``
      }
      from found as f where not f.cut
    ),${
      rated
        ? sql`
    priced as materialized (
      select w.*,
        coalesce(sum(least(w.weight, q.rate_limit)) over (order by w.rank) > q.budget, false) as cut_by_queue,
        coalesce(sum(least(w.weight, k.rate_limit)) over (partition by w.kind order by w.rank) > k.budget, false)
          as cut_by_kind
      from wanted as w
      left join budgets as q on q.kind = '' left join budgets as k on k.kind = w.kind
      ${serial ? sql`where w.unbroken` : sql``}
    ),`
        : sql``
    }
    within as materialized (
      select id, place, group_key, kind, weight, cost, rank from (
        select w.*, sum(w.bytes) over (order by w.rank rows between unbounded preceding and 1 preceding) as before${
          rated && serial
            ? sql`,
          bool_and(not w.cut_by_queue and not w.cut_by_kind) over (partition by w.group_key order by w.n) as affordable`
            : sql``
        }
        from ${rated ? sql`priced` : sql`wanted`} as w
        ${
          rated && !serial
            ? sql`where not w.cut_by_queue and not w.cut_by_kind`
            : serial && !rated
              ? sql`where w.unbroken`
              : sql``
        }
      ) as w
      where (before is null or before < ${MAX_CLAIM_BYTES}::int8)${rated && serial ? sql` and affordable` : sql``}
      order by rank
    ),
    turning as materialized (
      select c.group_key, c.over, 1 + greatest(c.turn, r.turn)
          + greatest(coalesce(c.taken_weight, 0), 1) * 1000 / c.share_of as turn,
        case when c.rate_limit is null then '{}'
          else ${rateWith(sql`c.kept`, sql`c.slot`, sql`coalesce(c.taken_cost, 0)`)} end as rate_used,
        case
          when c.held + c.taken >= c.concurrency${serial ? sql` or c.held > 0` : sql``} then 'infinity'::timestamptz
          when c.budget <= coalesce(c.taken_cost, 0) or c.cut_by_group
            then ${rateFreeAt(sql`coalesce(c.oldest, c.slot)`, sql`c.rate_per_ms`)}
          when c.taken < c.room and not exists (${dueInGroup(tables, {
            queue,
            group: sql`c.group_key`,
            most: sql`1`,
            and: sql`j.id not in (select id from within)`,
          })}
          ) then 'infinity'
          else '-infinity'
        end as ready_at
      from (
        select o.*, count(o.job_id) over jobs as taken, sum(o.weight) over jobs as taken_weight,
          sum(o.cost) over jobs as taken_cost, bool_or(o.cut) over jobs as cut_by_group
        from (
          select place, group_key, turn, share_of, concurrency, rate_limit, rate_per_ms, slot, oldest, kept, held,
            over, room, budget, null as job_id, null as weight, null as cost, false as cut
          from open
          union all
          select place, null, null, null, null, null, null, null, null, null, null,
            null, null, null, id, weight, cost, false
          from within
          union all
          select place, null, null, null, null, null, null, null, null, null, null,
            null, null, null, null, null, null, true
          from found where cut
        ) as o
        window jobs as (partition by o.place)
      ) as c cross join ring as r
      where c.group_key is not null
    )${
      rated
        ? sql`,
    spent as materialized (
      select b.kind, ${rateWith(sql`b.kept`, sql`b.slot`, sql`coalesce(x.used, 0)`)} as rate_used, coalesce(x.used, 0) as used,
        coalesce(x.used, 0) >= b.budget or exists (
          select from priced as p where case when b.kind = '' then p.cut_by_queue else p.kind = b.kind and p.cut_by_kind end
        ) as cut,
        date_part('epoch', ${rateFreeAt(sql`coalesce(b.oldest, b.slot)`, sql`b.rate_per_ms`)} - statement_timestamp())
          * 1000 as wait_ms
      from budgets as b left join lateral (
        select sum(least(w.weight, b.rate_limit)) as used from within as w where b.kind in ('', w.kind)
      ) as x on true
    )`
        : sql``
    }`;
}

/**
 * Groups go on, holds are written and those that no longer count removed, rates are used up. `IS TRUE` keeps the
 * pairs from being joined: they are hashed.
 */
function writes(
  { queueGroups, queueHolds, queueUsage }: GroupTables,
  { queue }: GroupClaim,
  rated: boolean,
): SQL {
  return sql`,
    turned as (
      update ${queueGroups} as g set turn = t.turn, ready_at = t.ready_at, rate_used = t.rate_used
      from turning as t where g.queue = ${queue} and g.group_key = t.group_key
    ),
    held as (
      insert into ${queueHolds} as h (queue, group_key, job_id)
      select ${queue}::text, w.group_key, w.id from within as w order by w.group_key, w.id
      on conflict (queue, group_key, job_id) do update set until = null
    ),
    swept as (
      delete from ${queueHolds} as h
      where h.queue = ${queue} and h.group_key = any(array(select group_key from turning where over is not null))
        and ((h.group_key, h.job_id) in (select group_key, unnest(over) from turning)) is true
        and h.job_id not in (select id from within)
    )${
      rated
        ? sql`,
    used as (
      update ${queueUsage} as u set rate_used = s.rate_used
      from spent as s where u.queue = ${queue} and u.kind = s.kind and s.used > 0
    )`
        : sql``
    }`;
}

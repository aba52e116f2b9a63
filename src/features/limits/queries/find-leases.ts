import { type SQL, sql } from 'drizzle-orm';
import type { Executor, RawRow, Runner } from '../../../core/sql/executor.ts';
import { jsonRows } from '../../../core/sql/json-rows.ts';
import { perStatement, queueOf } from '../../../core/sql/one-queue.ts';
import type { Rate } from '../settings/limit-settings.ts';
import { type LeasedLimit, type LeaseTables, queryLimitRows } from '../sql/limit-tables.ts';

/** A limit of slots that a worker keeps to. */
export interface LeaseQuestion extends LeasedLimit {
  /** What the code declares; `null` for none. What was set at run time goes first. */
  readonly declared: number | null;
}

/** How a limit is shared out. */
export interface LeaseShare {
  /** The limit; `undefined` when there is none. */
  readonly limit: number | undefined;
  /** The slots that the worker has. */
  readonly has: number;
  /** The slots that all living workers have. */
  readonly total: number;
  /** How many living workers have slots, or want some; with the worker itself if it does. */
  readonly sharing: number;
  /** The fewest slots that another worker has which could use more; `undefined` when all have enough. */
  readonly leastLacking: number | undefined;
}

/** How a limit is shared out, and what was set of it. */
export interface LimitLook extends LeaseShare {
  /** The rate that was set at run time; `undefined` for none. */
  readonly rate: Rate | undefined;
}

/**
 * Reads how limits are shared out, in the order of the questions. On Citus it sends one statement per queue.
 *
 * **Under concurrency.** A plain read, which locks nothing: only `takeLease` takes slots. Only the worker
 * itself changes its leases, so `has` is right unless one of its statements is under way.
 *
 * @param workerId `null` where only the totals matter: then `has` is 0
 */
export async function findLeases(
  db: Executor | Runner,
  tables: LeaseTables,
  workerId: number | null,
  questions: readonly LeaseQuestion[],
): Promise<LimitLook[]> {
  const looks = new Map<LeaseQuestion | undefined, LimitLook>();
  for (const asked of perStatement(tables, questions)) {
    for (const row of await queryLimitRows(db, tables, findLeasesQuery(tables, workerId, asked))) {
      const rate =
        row.rate_limit === null
          ? undefined
          : { limit: Number(row.rate_limit), perMs: Number(row.rate_per_ms) };
      looks.set(asked[Number(row.place) - 1], { ...shareOf(row), rate });
    }
  }
  return questions.flatMap((question) => looks.get(question) ?? []);
}

export function findLeasesQuery(
  { queueLimits, queueUsage, queueWorkers }: LeaseTables,
  workerId: number | null,
  questions: readonly LeaseQuestion[],
): SQL {
  const worker = sql`${workerId === null ? null : String(workerId)}::text`;
  const queue = queueOf(questions, 'i.queue');
  const asked = jsonRows(
    questions.map(({ queue, kind, declared }) => JSON.stringify({ queue, kind, declared })),
    'queue text, kind text, declared int4',
  );
  return sql`
    select i.place::float8 as place, coalesce(s.concurrency, i.declared)::float8 as max,
      v.has::float8 as has, v.total::float8 as total, v.sharing::float8 as sharing,
      v.least_lacking::float8 as least_lacking, s.rate_limit, s.rate_per_ms::float8 as rate_per_ms
    from ${asked} as i
    left join lateral (
      select s.concurrency, s.rate_limit, s.rate_per_ms from ${queueLimits} as s
      where s.queue = i.queue and s.kind = i.kind and s.group_key = '' limit 1
    ) as s on true
    cross join lateral (
      select coalesce(max(v.has) filter (where v.worker = ${worker}), 0) as has,
        coalesce(sum(v.has), 0) as total,
        count(*) filter (where v.has > 0 or v.wants > 0) as sharing,
        min(v.has) filter (where v.worker <> ${worker} and v.has < v.wants) as least_lacking
      from (
        select e.worker, (e.lease ->> 0)::int8 as has, (e.lease ->> 1)::int8 as wants
        from ${queueUsage} as u cross join jsonb_each(u.leases) as e(worker, lease)
        where u.queue = ${queue} and u.kind = i.kind
          and e.worker in (select w.id::text from ${queueWorkers} as w)
        offset 0
      ) as v
    ) as v`;
}

/** Of the columns `max`, `has`, `total`, `sharing` and `least_lacking`. */
export function shareOf(row: RawRow): LeaseShare {
  return {
    limit: row.max === null ? undefined : Number(row.max),
    has: Number(row.has),
    total: Number(row.total),
    sharing: Number(row.sharing),
    leastLacking: row.least_lacking === null ? undefined : Number(row.least_lacking),
  };
}

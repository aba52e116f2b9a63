import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import { type KnownMetrics, queryMetrics } from '../sql/metrics-tables.ts';
import { COUNTERS, summedMetrics } from '../sql/summed-metrics.ts';

/**
 * Adds up the reports of the oldest hour that has not been added up yet, and has been over for five minutes:
 * to one row per queue and kind, beside the reports. Returns whether there was such an hour.
 *
 * **Under concurrency.** The rows of an hour have one key each, so of any number of workers that fold it one
 * writes them; the others wait for its commit, and write nothing. They write in the same order, so none waits
 * in a circle. A report that is written more than five minutes after its statement began is in no hour.
 */
export async function foldMetrics(db: Runner, known: KnownMetrics): Promise<boolean> {
  return (await queryMetrics(db, known, foldMetricsQuery(known))).length > 0;
}

/**
 * Takes back what was added up while the server's clock was ahead, of hours that are not over: else the later
 * reports of these would be in none. As long as their reports are there: a clock that is behind loses none.
 *
 * Hours are counted from 1970: each session may have another time zone, and some are half an hour off.
 */
export function foldMetricsQuery({ metrics }: KnownMetrics): SQL {
  return sql`
    with hour as materialized (
      select (floor(date_part('epoch', min(m.at)) / 3600) * 3600)::int8 as begin
      from ${metrics} as m
      where m.minutes = 1
        and m.at >= to_timestamp(${folded(metrics)})
        and m.at < to_timestamp(
          floor((date_part('epoch', statement_timestamp()) - 300) / 3600) * 3600)
    ),
    ahead as materialized (
      select f.report, f.queue, f.kind from ${metrics} as f
      where f.worker_id = 0 and f.report > date_part('epoch', statement_timestamp())::int8 - 3600
        and exists (
          select from ${metrics} as r
          where r.minutes = 1 and r.at >= f.at and r.at < f.at + interval '1 hour'
            and r.queue = f.queue and r.kind = f.kind
        )
      for update skip locked
    ),
    taken_back as (
      delete from ${metrics} as m
      where m.worker_id = 0 and (m.report, m.queue, m.kind) in (select report, queue, kind from ahead)
    ),
    part as materialized (
      select (select h.begin from hour as h) as step, m.* from ${metrics} as m
      where m.minutes = 1
        and m.at >= to_timestamp((select h.begin from hour as h))
        and m.at < to_timestamp((select h.begin from hour as h) + 3600)
    ),
    ${summedMetrics()}
    insert into ${metrics} (worker_id, report, queue, kind, at, minutes, wait_ms, run_ms,
      ${sql.raw(COUNTERS.join(', '))}, wait, run)
    select 0, s.step, s.queue, s.kind, to_timestamp(s.step), 60, s.wait_ms, s.run_ms,
      ${sql.raw(COUNTERS.map((name) => `s.${name}`).join(', '))}, s.wait, s.run
    from summed as s
    order by s.queue, s.kind
    on conflict do nothing
    returning report`;
}

/**
 * When the last hour ended that was added up, in seconds since 1970; 0 when none was. Not one that is still
 * to come: it was added up while the server's clock was ahead, and is taken back.
 */
export function folded(metrics: KnownMetrics['metrics']): SQL {
  return sql`coalesce((select max(f.report) + 3600 from ${metrics} as f where f.worker_id = 0
          and f.report <= date_part('epoch', statement_timestamp())::int8 - 3600), 0)`;
}

import { type SQL, sql } from 'drizzle-orm';

/** The columns of `queue_metrics` that are added up, but for the histograms. */
export const COUNTERS = [
  'completed',
  'retried',
  'discarded',
  'cancelled',
  'snoozed',
  'interrupted',
  'lost',
] as const;

const SUMS = ['wait_ms', 'run_ms', ...COUNTERS] as const;

/**
 * CTEs that add up the rows of the CTE `part`, which has the columns of `queue_metrics` and `step`: to one
 * row per step, queue and kind, in the CTE `summed`.
 */
export function summedMetrics(): SQL {
  return sql`total as materialized (
      select p.step, p.queue, p.kind, ${sql.raw(
        SUMS.map((column) => `sum(p.${column}) as ${column}`).join(', '),
      )}
      from part as p group by p.step, p.queue, p.kind
    ),
    ${binned('wait')},
    ${binned('run')},
    summed as materialized (
      select t.*, coalesce(w.bins, '{}') as wait, coalesce(r.bins, '{}') as run
      from total as t
      left join binned_wait as w on w.step = t.step and w.queue = t.queue and w.kind = t.kind
      left join binned_run as r on r.step = t.step and r.queue = t.queue and r.kind = t.kind
    )`;
}

/** Histograms are added up bin by bin. */
function binned(column: 'wait' | 'run'): SQL {
  const [cte, bins] = [sql.raw(`binned_${column}`), sql.raw(`p.${column}`)];
  return sql`${cte} as materialized (
      select b.step, b.queue, b.kind, jsonb_object_agg(b.bin, b.count) as bins
      from (
        select p.step, p.queue, p.kind, e.key as bin, sum(e.value::int8) as count
        from part as p cross join lateral jsonb_each_text(${bins}) as e
        group by p.step, p.queue, p.kind, e.key
      ) as b
      group by b.step, b.queue, b.kind
    )`;
}

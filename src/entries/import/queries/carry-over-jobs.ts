import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/index.ts';
import type { Executor } from '../../../index.ts';
import { arrayText, KEPT_ERRORS, planAnew, queryRows, withTime } from '../../../internal.ts';

/** What a job brings along that no enqueue can say. */
export interface History {
  readonly id: number;
  /** How many attempts it has behind it. */
  readonly attempt: number;
  /** Milliseconds since 1970; `undefined`: it keeps the time of its insert. */
  readonly createdAtMs: number | undefined;
}

/** Stands for what an attempt has failed with there. Without it that one would count as a worker's death. */
const ERROR = JSON.stringify({ name: 'Error', message: 'Failed before the import' });

/**
 * Gives jobs of one queue, which this same transaction has inserted, their past attempts and the time at
 * which the other system received them. Returns how many it found.
 *
 * **Under concurrency.** No other transaction sees these rows before the commit, so none claims them. It
 * waits for no other transaction, and no other transaction waits for it. A job that has changed since its
 * insert is left alone.
 */
export async function carryOverJobs(
  db: Executor,
  tables: QueueTables,
  queue: string,
  histories: readonly History[],
): Promise<number> {
  if (histories.length === 0) return 0;
  return (await queryRows(db, tables, carryOverJobsQuery(tables, queue, histories))).length;
}

export function carryOverJobsQuery(
  { queueJobs }: QueueTables,
  queue: string,
  histories: readonly History[],
): SQL {
  const ids = arrayText(histories.map(({ id }) => id));
  const attempts = arrayText(histories.map(({ attempt }) => attempt));
  const times = arrayText(histories.map(({ createdAtMs }) => createdAtMs ?? 'null'));
  const error = withTime(sql`${ERROR}::text::jsonb || jsonb_build_object('attempt', n)`);
  return sql`
    with i as materialized (
      select id, attempt, to_timestamp(created_at_ms / 1000) as created_at, (
          select coalesce(jsonb_agg(${error} order by n), '[]')
          from generate_series(greatest(attempt - ${KEPT_ERRORS - 1}::int4, 1), attempt) as n
        ) as errors
      from ${planAnew()} cross join rows from (
        unnest(${ids}::text::int8[]), unnest(${attempts}::text::int2[]), unnest(${times}::text::float8[])
      ) as r(id, attempt, created_at_ms)
    )
    update ${queueJobs} as j
    set attempt = i.attempt, errors = i.errors, created_at = coalesce(i.created_at, j.created_at)
    from i
    where j.queue = ${queue} and j.id = any(array(select id from i)) and i.id = j.id
      and j.worker_id is null and j.attempt = 0
    returning j.id`;
}

import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type RawRow, type Runner } from '../../sql/executor.ts';
import { type HeldJob, idsAndFences } from '../../sql/fence.ts';
import { perStatement, queueOf } from '../../sql/one-queue.ts';
import { isDistributed } from '../../sql/statement-context.ts';

export interface RequestsQuestion {
  readonly workerId: number;
  readonly queues: readonly string[];
  /** The jobs that it holds, as far as it knows. */
  readonly jobs: readonly (HeldJob & { readonly queue: string })[];
}

/** A request about one of a worker's jobs, or something that the worker has missed about it. */
export interface JobRequest extends HeldJob {
  /** Whether it still holds the job, under this fence. */
  readonly held: boolean;
  /** Why the job is to end, or has ended as cancelled; `null` when it was lost or ended in another way. */
  readonly cancelReason: string | null;
}

export interface RequestsAnswer {
  /** The worker's queues that are paused. */
  readonly paused: ReadonlySet<string>;
  /** The jobs of this worker about which there is news; rarely any. */
  readonly jobs: readonly JobRequest[];
}

/**
 * Finds what is asked of a worker from outside: pauses of its queues and cancels of its jobs. One statement;
 * for a worker without jobs it reads a table of a few rows.
 *
 * **Under concurrency.** A plain read, which may be out of date when it arrives: use it only to stop work
 * early. Every write checks the fence itself.
 */
export async function findRequests(
  db: Runner,
  tables: QueueTables,
  question: RequestsQuestion,
): Promise<RequestsAnswer> {
  const rows: RawRow[] = [];
  for (const query of findRequestsQueries(tables, question))
    rows.push(...(await queryRows(db, tables, query)));
  return {
    paused: new Set(rows.filter((row) => row.id === null).map((row) => String(row.queue))),
    jobs: rows.filter((row) => row.id !== null).map(toJobRequest),
  };
}

/** One statement; on Citus one for the pauses, and one for the jobs of each queue. */
function findRequestsQueries(tables: QueueTables, question: RequestsQuestion): SQL[] {
  const { workerId, jobs } = question;
  if (jobs.length === 0 || !isDistributed(tables)) return [findRequestsQuery(tables, question)];
  return [
    findRequestsQuery(tables, { ...question, jobs: [] }),
    ...perStatement(tables, jobs).map((jobs) => jobRequestsQuery(tables, workerId, jobs)),
  ];
}

export function findRequestsQuery(tables: QueueTables, { workerId, queues, jobs }: RequestsQuestion): SQL {
  const pauses = sql`
    select p.queue, null::int8 as id, null::int8 as fence, null::bool as held,
      null::text as cancel_reason
    from ${tables.queuePauses} as p
    where p.queue = any(array(select jsonb_array_elements_text(${JSON.stringify(queues)}::text::jsonb)))`;
  if (jobs.length === 0) return pauses;
  return sql`${pauses}
    union all${jobRequestsQuery(tables, workerId, jobs)}`;
}

/** `limit 1` makes each job a look-up by its key; a join could read the whole table. */
export function jobRequestsQuery(
  { queueJobs, queueResults }: QueueTables,
  workerId: number,
  jobs: RequestsQuestion['jobs'],
): SQL {
  const queue = queueOf(jobs, 'i.queue');
  return sql`
    select i.queue, i.id, i.fence, j.id is not null as held,
      coalesce(j.cancel_reason, r.reason) as cancel_reason
    from rows from (
      ${idsAndFences(jobs)},
      jsonb_array_elements_text(${JSON.stringify(jobs.map(({ queue }) => queue))}::text::jsonb)
    ) as i(id, fence, queue)
    left join lateral (
      select j.id, j.cancel_reason from ${queueJobs} as j
      where j.queue = ${queue} and j.id = i.id and j.fence = i.fence and j.worker_id = ${workerId}::int8
      limit 1
    ) as j on true
    left join lateral (
      select r.errors -> -1 ->> 'message' as reason from ${queueResults} as r
      where j.id is null and r.queue = ${queue} and r.job_id = i.id and r.fence = i.fence
        and r.state = 'cancelled'
      limit 1
    ) as r on true
    where j.id is null or j.cancel_reason is not null`;
}

function toJobRequest(row: RawRow): JobRequest {
  return {
    id: Number(row.id),
    fence: Number(row.fence),
    held: row.held === true,
    cancelReason: row.cancel_reason === null ? null : String(row.cancel_reason),
  };
}

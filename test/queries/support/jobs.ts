import type { Claim, ClaimedJob } from '../../../src/core/queries/claim/claim-jobs.ts';
import { claimJobs } from '../../../src/core/queries/claim/claim-jobs.ts';
import { queueJobs, queuePauses, queueResults, queueWorkers } from '../../../src/core/schema/index.ts';
import type { Executor } from '../../../src/core/sql/executor.ts';
import { queueLimits, queueSchedules, queueUsage } from '../../../src/features/control/index.ts';
import type { Connection } from '../../support/test-database.ts';

export const tables = { queueJobs, queueResults, queueWorkers, queuePauses };
export const scheduleTables = { ...tables, queueSchedules };
export const limitTables = { ...tables, queueLimits, queueUsage };

/** What a test says about a job; the rest is ordinary: due now in queue `q`, kind `k`, held by nobody. */
export interface GivenJob {
  readonly queue?: string;
  readonly kind?: string;
  readonly payload?: unknown;
  readonly priority?: number;
  /** Milliseconds from now; negative: how long it has been due. */
  readonly dueInMs?: number;
  readonly attempt?: number;
  readonly maxAttempts?: number;
  readonly fence?: number;
  readonly workerId?: number;
  readonly uniqueKey?: string;
  readonly errors?: readonly unknown[];
  readonly metadata?: Readonly<Record<string, unknown>>;
}

type Client = Connection['client'];

/** Adds jobs as they are, without the code under test; answers their ids in the same order. */
export async function addJobs<const TJobs extends readonly GivenJob[]>(
  client: Client,
  jobs: TJobs,
): Promise<{ -readonly [K in keyof TJobs]: number }> {
  const rows = await client<{ id: string }[]>`
    insert into queue_jobs (queue, kind, payload, priority, run_at, attempt, max_attempts, fence, worker_id, claimed_at,
      unique_key, errors, metadata)
    select coalesce(queue, 'q'), coalesce(kind, 'k'), coalesce(payload, 'null'), coalesce(priority, 5),
      statement_timestamp() + coalesce("dueInMs", -1000) * interval '1 ms', coalesce(attempt, 0),
      coalesce("maxAttempts", 20), coalesce(fence, 0), "workerId", case when "workerId" is not null then statement_timestamp() end,
      "uniqueKey", coalesce(errors, '[]'), coalesce(metadata, '{}')
    from rows from (jsonb_to_recordset(${JSON.stringify(jobs)}::text::jsonb) as (queue text, kind text, payload jsonb,
      priority int2, "dueInMs" float8, attempt int2, "maxAttempts" int2, fence int8, "workerId" int8, "uniqueKey" text,
      errors jsonb, metadata jsonb)) with ordinality as given (queue, kind, payload, priority, "dueInMs", attempt,
      "maxAttempts", fence, "workerId", "uniqueKey", errors, metadata, place)
    order by place
    returning id`;
  // One row comes back for each that went in.
  return rows.map(({ id }) => Number(id)) as { -readonly [K in keyof TJobs]: number };
}

export async function addJob(client: Client, job: GivenJob = {}): Promise<number> {
  const [id] = await addJobs(client, [job]);
  return id;
}

/** Many ordinary jobs at once, one millisecond apart, in the order of their ids. */
export async function fillJobs(client: Client, count: number, queue = 'q'): Promise<void> {
  await client`
    insert into queue_jobs (queue, kind, payload, max_attempts, run_at)
    select ${queue}, 'k', '{"n": 1}', 20, statement_timestamp() - interval '1 day' + n * interval '1 ms'
    from generate_series(1, ${count}) as n`;
}

export interface JobRow {
  readonly id: number;
  readonly worker_id: number | null;
  readonly fence: number;
  readonly attempt: number;
  readonly run_at: string;
  readonly claimed_at: string | null;
  readonly errors: readonly { readonly attempt: number; readonly at: string }[];
  readonly [column: string]: unknown;
}

/** The live job as its row stands, or `undefined`. */
export async function jobRow(client: Client, id: number): Promise<JobRow | undefined> {
  const [found] = await client<{ row: JobRow }[]>`
    select to_jsonb(j) as row from queue_jobs as j where id = ${id}`;
  return found?.row;
}

export interface ResultRow {
  readonly job_id: number;
  readonly state: string;
  readonly fence: number;
  readonly output: unknown;
  readonly errors: readonly { readonly attempt: number; readonly message: string; readonly at: string }[];
  readonly [column: string]: unknown;
}

/** The job's result as its row stands, or `undefined`. */
export async function resultRow(client: Client, id: number): Promise<ResultRow | undefined> {
  const [found] = await client<{ row: ResultRow }[]>`
    select to_jsonb(r) as row from queue_results as r where job_id = ${id}`;
  return found?.row;
}

/** Not by `truncate`, which makes a new file for every table and index: ten times as long where there are few rows. */
export async function clearTables(client: Client): Promise<void> {
  await client.unsafe(`
    delete from queue_jobs; delete from queue_results; delete from queue_workers; delete from queue_pauses`);
}

/** Every priority from the start. */
export const ALL_BANDS = Array.from({ length: 10 }, (_, priority) => ({
  priority,
  floorMs: Number.NEGATIVE_INFINITY,
}));

/** A claim of one job of queue `q` and kind `k` by worker 1, unless a test says otherwise. */
export function claimOf(claim: Partial<Claim> = {}): Claim {
  return {
    queue: 'q',
    kinds: ['k'],
    bands: ALL_BANDS,
    limit: 1,
    workerId: 1,
    fromGoneWorkers: false,
    ...claim,
  };
}

export async function claim(db: Executor, options: Partial<Claim> = {}): Promise<ClaimedJob[]> {
  return await claimJobs(db, tables, claimOf(options));
}

export const idsOf = (jobs: readonly { readonly id: number }[]): number[] => jobs.map(({ id }) => id);

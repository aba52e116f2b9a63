import { type SQL, sql } from 'drizzle-orm';
import { NO_GROUP } from '../job/group.ts';
import type { AttemptError } from '../schema/attempt-error.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type OwnColumn, ownColumnsOf } from '../schema/own-columns.ts';
import type { FinalState } from '../schema/queue-results.ts';
import { dateOf, epochMs } from './epoch-ms.ts';
import type { RawRow } from './executor.ts';
import { ownRecord, selectOwn } from './own-values.ts';

/**
 * Where a live job stands. `waiting`: for something without a time at which it ends. `scheduled`: not due
 * yet. `due`: may run now. `running`: a worker holds it.
 */
export type LiveState = 'waiting' | 'scheduled' | 'due' | 'running';

/** The state of any job, live or finished. */
export type JobState = LiveState | FinalState;

/** The fields that live jobs and results share, with the payload and output as stored. */
interface CommonRecord<TKind extends string, TPayload, TRunAt = Date> {
  readonly id: number;
  readonly queue: string;
  readonly kind: TKind;
  readonly payload: TPayload;
  readonly priority: number;
  /** How many attempts have begun. */
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly uniqueKey: string | null;
  /** Its group, in a queue with groups; `null` for a job without one. */
  readonly group: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The errors of failed attempts, oldest first; the last 10. */
  readonly errors: readonly AttemptError[];
  readonly createdAt: Date;
  /** When it was or will be due; `null` while it waits for something without a limit of time. */
  readonly runAt: TRunAt;
}

/**
 * A job, still to do or finished, distinguished by `state`. The payload of a completed job is `undefined`
 * where it is not kept (`keepResult: 'outcome'`); that of a job without one is `null`.
 */
export type JobRecord<TKind extends string = string, TPayload = unknown, TOutput = unknown> =
  | (CommonRecord<TKind, TPayload> & LiveFields & { readonly state: 'scheduled' | 'due' })
  | (CommonRecord<TKind, TPayload, null> & LiveFields & { readonly state: 'waiting' })
  | (CommonRecord<TKind, TPayload> &
      LiveFields & {
        readonly state: 'running';
        readonly workerId: number;
        readonly claimedAt: Date;
      })
  | (CommonRecord<TKind, TPayload> &
      FinishedFields & { readonly state: 'completed'; readonly output: TOutput })
  | (CommonRecord<TKind, TPayload> & FinishedFields & { readonly state: 'discarded' | 'cancelled' });

/** A job of a kind whose completed jobs may lack the payload. */
export type OutcomeRecord<TKind extends string, TPayload, TOutput> =
  | Exclude<JobRecord<TKind, TPayload, TOutput>, { readonly state: 'completed' }>
  | Extract<JobRecord<TKind, TPayload | undefined, TOutput>, { readonly state: 'completed' }>;

interface LiveFields {
  /** The last value of `job.progress(value)`, in this attempt or an earlier one; `null` before that. */
  readonly progress: unknown;
  /** Why the end of the running job was requested; `null` otherwise. */
  readonly cancelReason: string | null;
}

interface FinishedFields {
  /** `null` when no worker held it: it was cancelled while waiting, for example. */
  readonly workerId: number | null;
  readonly claimedAt: Date | null;
  readonly finishedAt: Date;
}

/** The live jobs `j` that satisfy `where`, as records. @param from the rows among which it looks */
export function liveRecords({ queueJobs }: QueueTables, where: SQL, from = sql`${queueJobs}`): SQL {
  return sql`
      select j.id, j.queue, j.kind, ${liveState} as state, j.payload, null::jsonb as output, j.errors,
        j.attempt, j.max_attempts, j.priority, j.unique_key, j.group_key, j.metadata, j.worker_id,
        ${epochMs('j.created_at')} as created_at, ${epochMs('j.run_at')} as run_at,
        ${epochMs('j.claimed_at')} as claimed_at, null::float8 as finished_at,
        j.progress, j.cancel_reason, true as payload_kept${selectOwn(ownColumnsOf(queueJobs), 'j')}
      from ${from} as j where ${where}`;
}

/** The results `r` that satisfy `where`, as records. @param from the rows among which it looks */
export function resultRecords(
  { queueJobs, queueResults }: QueueTables,
  where: SQL,
  from = sql`${queueResults}`,
): SQL {
  return sql`
      select r.job_id as id, r.queue, r.kind, r.state, r.payload, r.output, r.errors,
        r.attempt, r.max_attempts, r.priority, r.unique_key, r.group_key, r.metadata, r.worker_id,
        ${epochMs('r.created_at')} as created_at, ${epochMs('r.run_at')} as run_at,
        ${epochMs('r.claimed_at')} as claimed_at, ${epochMs('r.finished_at')} as finished_at,
        null::jsonb as progress, null::text as cancel_reason,
        r.payload is not null as payload_kept${selectOwn(ownColumnsOf(queueJobs), 'r')}
      from ${from} as r where ${where}`;
}

/** The state of a live job `j`, as text. */
export const liveState: SQL = sql.raw(
  `case when j.worker_id is not null then 'running' when j.run_at = 'infinity' then 'waiting'
        when j.run_at > statement_timestamp() then 'scheduled' else 'due' end`,
);

export function toJobRecord(row: RawRow, own: readonly OwnColumn[]): JobRecord {
  const common = {
    ...ownRecord(own, row),
    id: Number(row.id),
    queue: String(row.queue),
    kind: String(row.kind),
    // Drivers read null for the JSON null, too.
    payload: row.payload_kept === true ? row.payload : undefined,
    priority: Number(row.priority),
    attempt: Number(row.attempt),
    maxAttempts: Number(row.max_attempts),
    uniqueKey: row.unique_key === null ? null : String(row.unique_key),
    group: row.group_key === null || row.group_key === NO_GROUP ? null : String(row.group_key),
    // Only this library writes the two jsonb columns, in these shapes.
    metadata: row.metadata as Record<string, unknown>,
    errors: row.errors as AttemptError[],
    createdAt: dateOf(row.created_at),
    runAt: dateOf(row.run_at),
  };
  const live = {
    progress: row.progress,
    cancelReason: row.cancel_reason === null ? null : String(row.cancel_reason),
  };
  const workerId = row.worker_id === null ? null : Number(row.worker_id);
  const claimedAt = row.claimed_at === null ? null : dateOf(row.claimed_at);
  // The column has a CHECK, and the query computes the live states.
  const state = row.state as JobState;
  switch (state) {
    case 'waiting':
      return { ...common, ...live, state, runAt: null };
    case 'scheduled':
    case 'due':
      return { ...common, ...live, state };
    case 'running':
      return { ...common, ...live, state, workerId: Number(workerId), claimedAt: claimedAt ?? common.runAt };
  }
  const ended = { workerId, claimedAt, finishedAt: dateOf(row.finished_at) };
  return state === 'completed'
    ? { ...common, state, ...ended, output: row.output }
    : { ...common, state, ...ended };
}

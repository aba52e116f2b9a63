import { type SQL, sql } from 'drizzle-orm';
import { NO_GROUP } from '../job/group.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type OwnColumn, ownColumnsOf } from '../schema/own-columns.ts';
import { dateOf, epochMs } from './epoch-ms.ts';
import type { RawRow } from './executor.ts';
import { type JobState, liveState } from './job-record.ts';
import { ownRecord, selectOwn } from './own-values.ts';

/** What a person sees of a job in a list: no value of it is read whole. */
export interface JobLine {
  readonly id: number;
  readonly queue: string;
  readonly kind: string;
  readonly state: JobState;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly priority: number;
  readonly uniqueKey: string | null;
  readonly group: string | null;
  readonly workerId: number | null;
  /** Whether its end was requested. */
  readonly cancelling: boolean;
  readonly createdAt: Date;
  /** `null` while it waits for something without a time. */
  readonly runAt: Date | null;
  readonly claimedAt: Date | null;
  readonly finishedAt: Date | null;
  /** The beginning of its payload as Postgres writes it; `null` for one of more than 256 kB, or not kept. */
  readonly payload: string | null;
  readonly payloadKept: boolean;
  /** The name and the beginning of the message of its newest error; `null` without one. */
  readonly error: { readonly name: string; readonly message: string } | null;
  readonly own: Readonly<Record<string, unknown>>;
}

/** Above this many bytes as they are stored, a list does not turn a payload into text. */
const MAX_READ = 262_144;

/** How many characters of an error's message a list reads. */
export const ERROR_EXCERPT = 300;

/** The columns of a {@link JobLine}, of a live job `j` or a result `r`. */
export function lineColumns({ queueJobs }: QueueTables, alias: 'j' | 'r', excerpt: number): SQL {
  const live = alias === 'j';
  const own = selectOwn(ownColumnsOf(queueJobs), alias);
  const raw = (text: string) => sql.raw(text.replaceAll('@', alias));
  return sql`${raw(live ? '@.id' : '@.job_id as id')}, ${raw('@.queue, @.kind')},
        ${live ? liveState : raw('@.state')} as state,
        ${raw('@.attempt, @.max_attempts, @.priority, @.unique_key, @.group_key, @.worker_id')},
        ${live ? raw('@.cancel_reason is not null') : sql.raw('false')} as cancelling,
        ${epochMs(`${alias}.created_at`)} as created_at,
        ${epochMs(`nullif(${alias}.run_at, 'infinity')`)} as run_at,
        ${epochMs(`${alias}.claimed_at`)} as claimed_at,
        ${live ? sql.raw('null::float8') : epochMs('r.finished_at')} as finished_at,
        case when pg_column_size(${raw('@.payload')}) <= ${sql.raw(String(MAX_READ))}
          then left(${raw('@.payload')}::text, ${excerpt}) end as payload,
        ${live ? sql.raw('true') : sql.raw('r.payload is not null')} as payload_kept,
        left(${raw("@.errors -> -1 ->> 'name'")}, 100) as error_name,
        left(${raw("@.errors -> -1 ->> 'message'")}, ${sql.raw(String(ERROR_EXCERPT))}) as error${own}`;
}

export function toJobLine(row: RawRow, own: readonly OwnColumn[]): JobLine {
  const textOf = (value: unknown) => (value === null ? null : String(value));
  const timeOf = (value: unknown) => (value === null ? null : dateOf(value));
  return {
    id: Number(row.id),
    queue: String(row.queue),
    kind: String(row.kind),
    // The column has a CHECK, and the statement computes the live states.
    state: row.state as JobState,
    attempt: Number(row.attempt),
    maxAttempts: Number(row.max_attempts),
    priority: Number(row.priority),
    uniqueKey: textOf(row.unique_key),
    group: row.group_key === NO_GROUP ? null : textOf(row.group_key),
    workerId: row.worker_id === null ? null : Number(row.worker_id),
    cancelling: row.cancelling === true,
    createdAt: dateOf(row.created_at),
    runAt: timeOf(row.run_at),
    claimedAt: timeOf(row.claimed_at),
    finishedAt: timeOf(row.finished_at),
    payload: textOf(row.payload),
    payloadKept: row.payload_kept === true,
    error: row.error === null ? null : { name: textOf(row.error_name) ?? '', message: String(row.error) },
    own: ownRecord(own, row),
  };
}

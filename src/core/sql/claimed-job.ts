import { type SQL, sql } from 'drizzle-orm';
import type { AttemptError } from '../schema/attempt-error.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../schema/own-columns.ts';
import { answerSample } from './answer-sample.ts';
import { dateOf, epochMs } from './epoch-ms.ts';
import type { RawRow } from './executor.ts';
import { ownNames, ownRecord, selectOwn } from './own-values.ts';
import { payloadBytes } from './payload-bytes.ts';
import { membersIn } from './statement-context.ts';
import type { TableSize } from './table-size.ts';

/** Until when the handler of a claimed job may be called. After that it was claimed for nothing. */
export interface BeginTime {
  /** By the monotonic clock of this process. */
  readonly untilMs: number;
  /** Called when it is over, and the job is put back. */
  onMissed(): void;
}

/**
 * A job that this worker holds. The values of the app's own columns stand beside these.
 *
 * A class, since thousands wait at once: V8 makes the objects of a literal that often live as long in the old
 * generation, with all that they refer to.
 */
export class ClaimedJob {
  readonly id: number;
  readonly queue: string;
  readonly kind: string;
  /** Only in a queue whose jobs are in groups; a handler sees none where the job has none of its own. */
  declare readonly group?: string;
  /** What it counts for in rates; only in a queue that has some. */
  declare readonly cost?: number;
  /** Only of a group with a rate. */
  declare readonly beginTime?: BeginTime;
  /** The batch of which it is a member; only in a queue with workflows, and only of a member. */
  declare readonly batchId?: number;
  /** For how many batches it waited; only in a queue with workflows, and only of a job that did. */
  declare readonly blockers?: number;
  /** As stored: not validated yet. */
  readonly payload: unknown;
  /**
   * Its size in bytes as PostgreSQL keeps it in memory, uncompressed: about that of its JSON text. Its row
   * may take less, because PostgreSQL compresses what it stores.
   */
  readonly payloadBytes: number;
  readonly priority: number;
  readonly runAt: Date;
  /** Which attempt this is, counted from 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** Whether the claim recorded that the job begins; otherwise `beginJobs` must, before its handler runs. */
  readonly begun: boolean;
  /** The number that this claim raised: the next claim gets a higher one. */
  readonly fence: number;
  readonly uniqueKey: string | null;
  readonly errors: readonly AttemptError[];
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly createdAt: Date;
  readonly claimedAt: Date;
  /** Why its end was asked for while an earlier attempt ran: then it must not run. Usually `null`. */
  readonly cancelReason: string | null;

  constructor(row: RawRow, queue: string, claimedAt: Date) {
    this.id = Number(row.id);
    this.queue = queue;
    this.kind = String(row.kind);
    this.payload = row.payload;
    this.payloadBytes = Number(row.payload_bytes);
    this.priority = Number(row.priority);
    this.runAt = dateOf(row.run_at);
    this.attempt = Number(row.attempt);
    this.maxAttempts = Number(row.max_attempts);
    this.begun = row.begun === true;
    this.fence = Number(row.fence);
    this.uniqueKey = row.unique_key === null ? null : String(row.unique_key);
    // Only this library writes the two jsonb columns, in these shapes; empty ones travel as null.
    this.errors = (row.errors ?? []) as AttemptError[];
    this.metadata = (row.metadata ?? {}) as Record<string, unknown>;
    this.createdAt = row.created_at === row.run_at ? this.runAt : dateOf(row.created_at);
    this.claimedAt = claimedAt;
    this.cancelReason = row.cancel_reason === null ? null : String(row.cancel_reason);
    // Null stands for 1; absent where the queue has no rates.
    if (row.weight !== undefined) this.cost = Number(row.weight ?? 1);
    if (row.batch_id !== undefined && row.batch_id !== null) this.batchId = Number(row.batch_id);
    if (row.blockers !== undefined && row.blockers !== null) this.blockers = Number(row.blockers);
  }
}

const COLUMNS =
  sql.raw(`j.id, j.kind, j.payload, j.priority, j.claimed_at, j.attempt, j.max_attempts, j.fence,
      j.unique_key, j.errors, j.metadata, j.run_at, j.created_at, j.cancel_reason`);

/**
 * What a claim returns of its rows `j`: plain columns, as Citus allows no function of a time or size.
 *
 * @param withCosts whether the queue has rates
 */
export function claimedColumns(tables: QueueTables, withCosts = false): SQL {
  const own = ownNames(ownColumnsOf(tables.queueJobs), 'j.');
  return sql`${COLUMNS}${withCosts ? sql`, j.weight` : sql``}${batchOf(tables)}${own}`;
}

function batchOf(tables: QueueTables): SQL {
  return membersIn(tables) === undefined ? sql`` : sql`, j.batch_id, j.blockers`;
}

/**
 * The rows of {@link claimedColumns}, by the name `claimed`, as {@link toClaimedJobs} reads them.
 *
 * @param withSize with the column of `tableSize`, and with a row of that alone where none is claimed
 * @param withCosts as there
 * @param withSample with the columns of `answerSample`
 */
export function claimedRows(
  tables: QueueTables,
  {
    withSize,
    withCosts = false,
    withSample = false,
  }: {
    readonly withSize?: TableSize | undefined;
    readonly withCosts?: boolean;
    readonly withSample?: boolean;
  } = {},
): SQL {
  const size = withSize ? sql`t.${sql.raw(withSize)}, ` : sql``;
  const sample = withSample ? sql`${answerSample}, ` : sql``;
  const own = ownColumnsOf(tables.queueJobs);
  return sql`
    select ${size}${sample}j.id, j.kind, j.payload, ${payloadBytes} as payload_bytes, j.priority,
      j.claimed_at is not null as begun, j.attempt, j.max_attempts, j.fence, j.unique_key,
      nullif(j.errors, '[]') as errors, nullif(j.metadata, '{}') as metadata,
      ${epochMs('j.run_at')} as run_at, ${epochMs('j.created_at')} as created_at,
      ${epochMs('statement_timestamp()')} as claimed_at,
      j.cancel_reason${withCosts ? sql`, j.weight` : sql``}${batchOf(tables)}${selectOwn(own, 'j')}
    from ${withSize ? sql`table_size as t left join claimed as j on true` : sql`claimed as j`}`;
}

/**
 * Reads the rows of one claim. Times that are the same share a `Date`: of all that a job keeps in memory
 * while it waits, three of them were a third.
 */
export function toClaimedJobs(
  queueJobs: QueueTables['queueJobs'],
  rows: readonly RawRow[],
  queue: string,
): ClaimedJob[] {
  const claimedAt = dateOf(rows[0]?.claimed_at);
  return rows.map((row) => toClaimedJob(queueJobs, row, queue, claimedAt));
}

/**
 * Empties the answer of a claim that was read. The promises of the driver have waited for it for so long that
 * they are old to the garbage collector, which keeps what the old refer to until its next full run. So it
 * would move the rows of every claim to the old generation, and all that they refer to.
 */
export function forgetRows(rows: RawRow[]): void {
  rows.length = 0;
}

function toClaimedJob(
  queueJobs: QueueTables['queueJobs'],
  row: RawRow,
  queue: string,
  claimedAt: Date,
): ClaimedJob {
  const own = ownColumnsOf(queueJobs);
  const job = new ClaimedJob(row, queue, claimedAt);
  if (own.length === 0) return job;
  try {
    return Object.assign(job, ownRecord(own, row));
  } catch (error) {
    undecoded.set(job, { error });
    return job;
  }
}

const undecoded = new WeakMap<ClaimedJob, { readonly error: unknown }>();

/**
 * What a column type of the app has thrown at a value of this claimed job, which then has no own columns. Its
 * attempt fails with that. The claim has committed, and its other jobs must run.
 */
export function decodeErrorOf(job: ClaimedJob): { readonly error: unknown } | undefined {
  return undecoded.get(job);
}

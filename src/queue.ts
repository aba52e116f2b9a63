import {
  type EnqueueFromOptions,
  enqueueSelected,
  type SelectedRow,
  type SelectOf,
  selectedJobs,
} from './enqueue-from.ts';
import { type Enqueued, enqueueJobs } from './enqueue-jobs.ts';
import { QueueError } from './errors.ts';
import {
  checkDefinition,
  type JobDefinition,
  type OutputInput,
  type PayloadInput,
} from './job/definition.ts';
import { describeError } from './job/describe-error.ts';
import { checkId, checkInteger } from './job/limits.ts';
import { type EnqueueOptions, type NewJob, newJob } from './job/new-job.ts';
import type { StoredValue } from './job/stored.ts';
import { cancelJob } from './queries/cancel-job.ts';
import type { Executor } from './queries/executor.ts';
import { findJob } from './queries/find-job.ts';
import type { JobRecord, JobState } from './queries/job-record.ts';
import { listJobs } from './queries/list-jobs.ts';
import type { Redriven } from './queries/redrive-jobs.ts';
import { wakeChannel } from './queries/wake-channel.ts';
import { type RedriveFilter, redrive } from './redrive.ts';
import { type QueueTables, queueJobs, queuePauses, queueResults, queueWorkers } from './schema/index.ts';
import { WakeUps } from './wake-ups.ts';

/** A job's record, with the payload and output types of its definition, as they come back from JSON. */
export type JobRecordOf<TJob extends JobDefinition> = JobRecord<
  TJob['kind'],
  StoredValue<PayloadInput<TJob>>,
  StoredValue<OutputInput<TJob>>
>;

/** Payload and options of an enqueue; the payload may be left out where the definition has none. */
export type EnqueueArguments<TJob extends JobDefinition> =
  undefined extends PayloadInput<TJob>
    ? [payload?: PayloadInput<TJob>, options?: EnqueueOptions]
    : [payload: PayloadInput<TJob>, options?: EnqueueOptions];

/** One job of a bulk enqueue: its payload beside its options. */
export type EnqueueEntry<TJob extends JobDefinition> = EnqueueOptions &
  (undefined extends PayloadInput<TJob> ? { payload?: PayloadInput<TJob> } : { payload: PayloadInput<TJob> });

/** Which jobs {@link Queue.list} lists. */
export interface ListFilter<TJob extends JobDefinition = JobDefinition> {
  /** Only jobs of this definition's kind; their payload and output are typed by it. */
  job?: TJob | undefined;
  /** Only jobs of this kind. Not together with `job`. */
  kind?: string | undefined;
  queue?: string | undefined;
  state?: JobState | undefined;
  /** The `nextCursor` of the page before. @default the first page */
  cursor?: number | undefined;
  /** 1–1,000 jobs a page. @default 50 */
  limit?: number | undefined;
}

/** One page of jobs, newest id first. */
export interface JobList<TRecord> {
  readonly jobs: TRecord[];
  /** For the next page; `undefined` on the last one. */
  readonly nextCursor: number | undefined;
}

/** What became of a cancel. */
export type CancelResult =
  | { readonly cancelled: true }
  | { readonly cancelled: false; readonly reason: 'running' | 'finished' | 'not-found' };

/** Settings of {@link createQueue}. */
export interface CreateQueueOptions {
  /** The queue's tables, from `createQueueTables`. @default the tables of `drizzle-queue/schema` */
  tables?: QueueTables | undefined;
  /**
   * Whether an enqueue of jobs that are due tells the workers at once (`NOTIFY`), in the caller's transaction and at most about
   * twenty times a second for each queue. Workers poll in any case, so nothing is lost without. Turn it off where Postgres has
   * no `NOTIFY` (some compatible databases), where no worker listens, or where enqueues run in transactions that are to be
   * prepared (`PREPARE TRANSACTION` refuses one that has notified).
   * @default true
   */
  wakeUps?: boolean | undefined;
}

/**
 * The producing side of a queue: it puts jobs in, finds them, cancels and redrives them. It holds no connection; the first
 * argument of each method is the caller's own Drizzle database or transaction, and what it does commits or rolls back with it.
 */
export class Queue {
  readonly #wakeUps: WakeUps | undefined;

  constructor(
    readonly tables: QueueTables,
    { wakeUps = true }: Pick<CreateQueueOptions, 'wakeUps'> = {},
  ) {
    this.#wakeUps = wakeUps ? new WakeUps(wakeChannel(tables)) : undefined;
  }

  /**
   * Puts one job in. With a transaction, the job exists if and only if the transaction commits, and no worker sees it earlier.
   *
   * Under concurrency: see `uniqueKey`. An enqueue with a key waits for another open transaction that has just enqueued the
   * same key, since only its end decides who of the two is the duplicate.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent
   * @throws MissingMigrationError when the tables are missing
   */
  async enqueue<TJob extends JobDefinition>(
    db: Executor,
    job: TJob,
    ...[payload, options]: EnqueueArguments<TJob>
  ): Promise<Enqueued> {
    checkDefinition('enqueue', job);
    // An argument that may be left out is one that the definition types as `undefined`.
    const jobs = [await newJob(job, payload as PayloadInput<TJob>, options)];
    const [enqueued] = await enqueueJobs(db, this.tables, jobs, this.#wakeUps);
    if (enqueued === undefined) throw new QueueError('The insert returned no row');
    return enqueued;
  }

  /**
   * Puts any number of jobs of one kind in, in one statement; the answers stand in input order. Keys that repeat within the
   * input are duplicates of the first. All or nothing: one invalid entry, and none is sent.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent
   */
  async enqueueMany<TJob extends JobDefinition>(
    db: Executor,
    job: TJob,
    entries: readonly EnqueueEntry<TJob>[],
  ): Promise<Enqueued[]> {
    checkDefinition('enqueueMany', job);
    const jobs: NewJob[] = [];
    for (const entry of entries) {
      // As in enqueue: it may be left out where the definition types it as `undefined`.
      const made = newJob(job, entry.payload as PayloadInput<TJob>, entry);
      jobs.push('then' in made ? await made : made);
    }
    return await enqueueJobs(db, this.tables, jobs, this.#wakeUps);
  }

  /**
   * Puts one job in per row of a Drizzle select, as one `INSERT … SELECT`: a million jobs without a round trip each. A row
   * becomes the payload, with the select's own keys, as Postgres writes it in JSON. Rows are not validated here; a
   * worker validates when it claims.
   *
   * ```ts
   * const due = tx.select({ userId: users.id }).from(users).where(lt(users.trialEndsAt, sql`now()`));
   * await queue.enqueueFrom(tx, remindUser, due, { uniqueKey: (row) => sql`${row.userId}::text` });
   * ```
   */
  async enqueueFrom<TJob extends JobDefinition, TSelect extends SelectOf<SelectedRow<TJob>>>(
    db: Executor,
    job: TJob,
    select: TSelect,
    options: EnqueueFromOptions<ReturnType<TSelect['as']>> = {},
  ): Promise<{ enqueued: number; duplicates: number }> {
    checkDefinition('enqueueFrom', job);
    return await enqueueSelected(db, this.tables, selectedJobs(job, select, options), this.#wakeUps);
  }

  /** One job by id, live or finished; `undefined` when there is none. With a definition it is typed, and must be of its kind. */
  find(db: Executor, id: number): Promise<JobRecord | undefined>;
  find<TJob extends JobDefinition>(
    db: Executor,
    job: TJob,
    id: number,
  ): Promise<JobRecordOf<TJob> | undefined>;
  async find(db: Executor, jobOrId: JobDefinition | number, id?: number): Promise<JobRecord | undefined> {
    if (typeof jobOrId === 'number') return await findJob(db, this.tables, checkId('find', jobOrId));
    checkDefinition('find', jobOrId);
    const record = await findJob(db, this.tables, checkId('find', id));
    return record?.kind === jobOrId.kind ? record : undefined;
  }

  /**
   * Live jobs and results in one list, newest id first, a page at a time. A job keeps its id for life, so one that finishes
   * between two pages is neither missed nor listed twice.
   *
   * ```ts
   * const { jobs, nextCursor } = await queue.list(db, { job: sendReceipt, state: 'discarded' });
   * ```
   */
  async list<TJob extends JobDefinition>(
    db: Executor,
    filter: ListFilter<TJob> = {},
  ): Promise<JobList<JobRecordOf<TJob>>> {
    const limit = checkInteger('list: limit', filter.limit ?? 50, 1, 1_000);
    if (filter.job !== undefined) checkDefinition('list', filter.job);
    if (filter.job !== undefined && filter.kind !== undefined) {
      throw new TypeError('list: job and kind exclude each other');
    }
    if (filter.cursor !== undefined) checkInteger('list: cursor', filter.cursor, 1, Number.MAX_SAFE_INTEGER);
    const records = await listJobs(db, this.tables, {
      kind: filter.job?.kind ?? filter.kind,
      queue: filter.queue,
      state: filter.state,
      before: filter.cursor,
      limit: limit + 1,
    });
    // Stored in the form that the definition's schemas took in; the kind was filtered.
    const jobs = records.slice(0, limit) as JobRecordOf<TJob>[];
    return { jobs, nextCursor: records.length > limit ? jobs.at(-1)?.id : undefined };
  }

  /**
   * Ends a job that waits (scheduled or due). A running job is left alone, and so is a finished one; the answer says which.
   *
   * Under concurrency: against a claim one of the two wins, and never both.
   */
  async cancel(db: Executor, id: number, reason = 'cancelled'): Promise<CancelResult> {
    const found = await findJob(db, this.tables, checkId('cancel', id));
    if (found === undefined) return { cancelled: false, reason: 'not-found' };
    if ('finishedAt' in found) return { cancelled: false, reason: 'finished' };
    const { message } = describeError(new Error(reason), found.attempt);
    const error = { attempt: found.attempt, name: 'Cancelled', message };
    if (await cancelJob(db, this.tables, { id, queue: found.queue, reason: error }))
      return { cancelled: true };
    // A claim, or another cancel, came first. A job that is gone has completed without a kept result.
    const now = await findJob(db, this.tables, id);
    return { cancelled: false, reason: now === undefined || 'finishedAt' in now ? 'finished' : 'running' };
  }

  /**
   * Puts discarded jobs back, one by id or many by filter: due now, with all their attempts again, under their old ids.
   * A job whose unique key a live job holds stays discarded and is counted in `duplicates`.
   *
   * Under concurrency: two redrives of the same jobs put each back once.
   */
  async redrive(db: Executor, which: number | RedriveFilter): Promise<Redriven> {
    return await redrive(db, this.tables, which, this.#wakeUps);
  }
}

/**
 * A queue over the tables of `drizzle-queue/schema`, or over others. It opens nothing: make it once, at the top of a module
 * that both the web app and the workers import.
 */
export function createQueue(options: CreateQueueOptions = {}): Queue {
  return new Queue(options.tables ?? { queueJobs, queueResults, queueWorkers, queuePauses }, options);
}

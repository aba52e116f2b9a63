import { checkDefinition, type JobDefinition, type PayloadInput } from '../job/definition.ts';
import type { GivenOptions, LimitedEnqueueOptions, PlainEnqueueOptions } from '../job/enqueue-options.ts';
import { checkId, checkText, DEFAULT_MAX_PAYLOAD_BYTES, MAX_NAME_BYTES } from '../job/limits.ts';
import type { Limits } from '../limits/limits.ts';
import { findJob } from '../queries/find-job.ts';
import { findPauses, type PausedQueue } from '../queries/find-pauses.ts';
import { pauseQueue } from '../queries/pause-queue.ts';
import type { RedriveResult } from '../queries/redrive-jobs.ts';
import { resumeQueue } from '../queries/resume-queue.ts';
import type { Schedules } from '../schedules/schedules.ts';
import type { ControlTables } from '../schema/control/index.ts';
import type { QueueTables } from '../schema/index.ts';
import { checkSameOwnColumns, type OwnColumns, ownColumnsOf } from '../schema/own-columns.ts';
import type { QueryBuilders } from '../skip-locked/query-builders.ts';
import type { Executor } from '../sql/executor.ts';
import type { JobRecord } from '../sql/job-record.ts';
import { wakeChannel } from '../sql/wake-channel.ts';
import type { Around } from './around.ts';
import { type CancelOptions, type CancelResult, cancel } from './cancel.ts';
import type { Finding } from './check/finding.ts';
import type { EnqueueArguments, EnqueueEntry } from './enqueue-arguments.ts';
import { type EnqueueSettings, insertOneAround } from './enqueue-around.ts';
import { type EnqueueFromArguments, enqueueFrom, type SelectedRow, type SelectOf } from './enqueue-from.ts';
import type { EnqueueResult, LimitedEnqueueResult } from './enqueue-jobs.ts';
import { enqueueMany } from './enqueue-many.ts';
import { enqueueOne } from './enqueue-one.ts';
import { type EnqueueQuery, enqueueQuery } from './enqueue-query.ts';
import type { JobRecordOf } from './job-record-of.ts';
import { type JobList, type ListFilter, list, type OwnFilter } from './list.ts';
import type { CreateQueueOptions } from './options.ts';
import type { RedriveFilter } from './redrive.ts';
import { WakeUps } from './wake-ups.ts';

/**
 * The producing side of a queue: enqueues, finds, cancels and redrives jobs, and pauses queues. It holds no
 * connection: each method takes the caller's own Drizzle database or transaction first, and what it does
 * commits or rolls back with that. `TOwn` holds the values of the app's own columns.
 */
export class Queue<TOwn extends OwnColumns = OwnColumns, TSchedules = unknown, TLimits = unknown> {
  readonly #wakeUps: WakeUps | undefined;
  readonly #settings: EnqueueSettings;
  readonly #schedules: Schedules | undefined;
  readonly #limits: Limits | undefined;
  /** The queue's schedules; `undefined` unless {@link createQueue} was given `schedulesIn(…)`. */
  readonly schedules: TSchedules;
  /** The queue's limits; `undefined` unless {@link createQueue} was given `limitsIn(…)`. */
  readonly limits: TLimits;
  readonly tables: QueueTables;
  /** As {@link createQueue} was given it. */
  readonly around: Around | undefined;
  /** As {@link createQueue} was given it. */
  readonly keys: ControlTables['queueKeys'] | undefined;

  constructor(given: QueueTables, options: Omit<CreateQueueOptions, 'tables'> = {}) {
    const { maxPayloadBytes = DEFAULT_MAX_PAYLOAD_BYTES, around, schedules, limits, keys } = options;
    checkSameOwnColumns(given.queueJobs, given.queueResults);
    this.around = around;
    this.keys = keys;
    this.#wakeUps = (options.wakeUps ?? true) ? new WakeUps(wakeChannel(given)) : undefined;
    this.#limits = limits?.({ tables: given, channel: this.#wakeUps?.channel });
    const tables = this.#limits?.groupedTables ?? given;
    this.tables = tables;
    const own = ownColumnsOf(tables.queueJobs);
    this.#settings = { tables, own, wakeUps: this.#wakeUps, maxPayloadBytes, around: around?.enqueue, keys };
    this.#schedules = schedules?.({
      tables,
      channel: this.#wakeUps?.channel,
      maxPayloadBytes,
      enqueue: (db, job, payload) => insertOneAround(db, this.#settings, job, payload),
    });
    // `createQueue` derives their types from the same options.
    [this.schedules, this.limits] = [this.#schedules as TSchedules, this.#limits as TLimits];
  }

  /**
   * Enqueues one job. In a transaction, it exists if and only if that commits, and no worker sees it earlier.
   *
   * Under concurrency: see `uniqueKey`. With a key it waits for another open transaction that has just
   * enqueued the same key, since only its end decides which of the two is the duplicate.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent; a TypeError also for a
   * payload of a definition that has none
   * @throws MissingMigrationError when the tables are missing
   */
  enqueue<TJob extends JobDefinition>(
    db: Executor,
    job: TJob,
    payload: PayloadInput<TJob>,
    options: LimitedEnqueueOptions & TOwn['insert'],
  ): Promise<LimitedEnqueueResult>;
  enqueue<TJob extends JobDefinition>(
    db: Executor,
    job: TJob,
    ...[payload, options]: EnqueueArguments<TJob, TOwn['insert']>
  ): Promise<EnqueueResult>;
  async enqueue<TJob extends JobDefinition>(
    db: Executor,
    job: TJob,
    ...[payload, options]: EnqueueArguments<TJob, TOwn['insert'], GivenOptions>
  ): Promise<LimitedEnqueueResult> {
    checkDefinition('enqueue', job);
    // The definition types an argument that may be omitted as `undefined`.
    return await enqueueOne(db, this.#settings, job, payload as PayloadInput<TJob>, options);
  }

  /**
   * The query that enqueues one job, not yet sent: for drivers whose only transaction is a batch of queries,
   * such as Neon's over HTTP.
   *
   * ```ts
   * await db.batch([db.insert(orders).values(order), queue.enqueueQuery(db, sendReceipt, payload)]);
   * ```
   *
   * Under concurrency: as {@link enqueue}, but one statement cannot always return the id of a duplicate.
   *
   * @throws InvalidPayloadError | RangeError | TypeError at once, also for an asynchronous schema
   */
  enqueueQuery<TJob extends JobDefinition>(
    db: QueryBuilders,
    job: TJob,
    ...[payload, options]: EnqueueArguments<TJob, TOwn['insert'], PlainEnqueueOptions>
  ): EnqueueQuery {
    checkDefinition('enqueueQuery', job);
    // As in enqueue.
    return enqueueQuery(db, this.#settings, job, payload as PayloadInput<TJob>, options);
  }

  /**
   * Enqueues any number of jobs of one kind in one statement; returns the results in input order. Entries
   * with one key count one after the other. If one entry is invalid, none is sent.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent
   */
  enqueueMany<TJob extends JobDefinition>(
    db: Executor,
    job: TJob,
    entries: readonly EnqueueEntry<TJob, TOwn['insert'], LimitedEnqueueOptions>[],
  ): Promise<LimitedEnqueueResult[]>;
  enqueueMany<TJob extends JobDefinition>(
    db: Executor,
    job: TJob,
    entries: readonly EnqueueEntry<TJob, TOwn['insert']>[],
  ): Promise<EnqueueResult[]>;
  async enqueueMany<TJob extends JobDefinition>(
    db: Executor,
    job: TJob,
    entries: readonly EnqueueEntry<TJob, TOwn['insert'], GivenOptions>[],
  ): Promise<LimitedEnqueueResult[]> {
    checkDefinition('enqueueMany', job);
    return await enqueueMany(db, this.#settings, job, entries);
  }

  /**
   * Enqueues one job per row of a Drizzle select by one `INSERT … SELECT`. A row becomes the payload, with
   * the select's own keys, as Postgres writes it in JSON. Rows are not measured, only validated once claimed.
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
    ...[options]: EnqueueFromArguments<ReturnType<TSelect['as']>, TOwn['insert']>
  ): Promise<{ enqueued: number; duplicates: number }> {
    checkDefinition('enqueueFrom', job);
    return await enqueueFrom(db, this.#settings, job, select, options);
  }

  /** One job by id, live or finished, or `undefined`. With a definition: typed, and only of that kind. */
  find(db: Executor, id: number): Promise<(JobRecord & TOwn['select']) | undefined>;
  find<TJob extends JobDefinition>(
    db: Executor,
    job: TJob,
    id: number,
  ): Promise<JobRecordOf<TJob, TOwn['select']> | undefined>;
  async find(db: Executor, jobOrId: JobDefinition | number, id?: number): Promise<JobRecord | undefined> {
    if (typeof jobOrId === 'number') return await findJob(db, this.tables, checkId('find', jobOrId));
    checkDefinition('find', jobOrId);
    const record = await findJob(db, this.tables, checkId('find', id));
    return record?.kind === jobOrId.kind ? record : undefined;
  }

  /**
   * Live jobs and results in one list, newest id first, a page at a time. A job keeps its id for life, so one
   * that finishes between two pages is neither missed nor listed twice.
   */
  async list<TJob extends JobDefinition>(
    db: Executor,
    filter: ListFilter<TJob> & OwnFilter<TOwn['select']> = {},
  ): Promise<JobList<JobRecordOf<TJob, TOwn['select']>>> {
    // Payload and output are stored as the input of the definition's schemas, and the kind was filtered.
    return (await list(db, this.tables, filter)) as JobList<JobRecordOf<TJob, TOwn['select']>>;
  }

  /**
   * Ends a waiting job (scheduled or due). A running one gets a request: within a second its handler's signal
   * is aborted with a `JobCancelledError`, in whichever process it runs. Unless the attempt then completes,
   * the job ends as cancelled; it never runs again. With `force` a running job ends at once: its handler's
   * signal is aborted too, and the handler has no further effect on the job. The result says which.
   *
   * Under concurrency: against a claim or the end of an attempt, exactly one of the two wins. A handler that
   * completes its job anyway, by returning or by a committed `complete(tx)`, has completed it.
   */
  async cancel(db: Executor, id: number, given: string | CancelOptions = {}): Promise<CancelResult> {
    const options = typeof given === 'string' ? { reason: given } : given;
    return await cancel(db, this.tables, id, options, this.#wakeUps?.channel);
  }

  /**
   * Pauses a queue until {@link resume}, across restarts. Within a second workers begin no more of its jobs
   * and give back what they claimed ahead; `drain` and `runNext` begin none either. Running jobs and
   * enqueueing go on. Takes effect at the commit. Returns `false` when it was paused already.
   */
  async pause(db: Executor, queue: string): Promise<boolean> {
    checkText('pause: queue', queue, MAX_NAME_BYTES);
    return await pauseQueue(db, this.tables, { queue, channel: this.#wakeUps?.channel });
  }

  /** Ends a queue's pause; workers learn of it within a second. Returns `false` when it was not paused. */
  async resume(db: Executor, queue: string): Promise<boolean> {
    checkText('resume: queue', queue, MAX_NAME_BYTES);
    return await resumeQueue(db, this.tables, { queue, channel: this.#wakeUps?.channel });
  }

  /** The paused queues, by name, and since when. */
  async paused(db: Executor): Promise<PausedQueue[]> {
    return await findPauses(db, this.tables);
  }

  /**
   * Puts discarded jobs back, one by id or many by filter: due now, with all their attempts again, under
   * their old ids. A job whose unique key a live job has stays discarded and is counted in `duplicates`.
   *
   * Under concurrency: two redrives of the same jobs put each back once.
   */
  async redrive(db: Executor, which: number | RedriveFilter): Promise<RedriveResult> {
    const { redrive } = await import('./redrive.ts'); // An app that only enqueues does not load it.
    return await redrive(db, this.tables, which, this.#wakeUps);
  }

  /** What is wrong with the database's set-up and what to do about it, errors first; empty if nothing is. */
  async check(db: Executor): Promise<Finding[]> {
    const { checkQueue } = await import('./check/check-queue.ts'); // Nor this: a fifth of the producing side.
    const { tables, keys } = this;
    return await checkQueue(db, tables, { schedules: this.#schedules, limits: this.#limits, keys });
  }
}

import type { PgTable } from 'drizzle-orm/pg-core';
import { checkDefinition, type JobDefinition } from '../job/definition.ts';
import { checkId, checkText, DEFAULT_MAX_PAYLOAD_BYTES, MAX_NAME_BYTES } from '../job/limits.ts';
import { findPauses, type PausedQueue } from '../queries/operate/find-pauses.ts';
import { pauseQueue } from '../queries/operate/pause-queue.ts';
import type { RedriveResult } from '../queries/operate/redrive-jobs.ts';
import { resumeQueue } from '../queries/operate/resume-queue.ts';
import { checkSameOwnColumns } from '../schema/check-own-columns.ts';
import type { QueueTables } from '../schema/index.ts';
import { type OwnColumns, ownColumnsOf } from '../schema/own-columns.ts';
import { checkExecutor, type Database, type Executor } from '../sql/executor.ts';
import type { JobRecord } from '../sql/job-record.ts';
import { wakeChannel } from '../sql/wake-channel.ts';
import type { Finding } from './check/finding.ts';
import type { Around } from './enqueue/around.ts';
import { type EnqueueSettings, insertOneAround } from './enqueue/enqueue-around.ts';
import { WakeUps } from './enqueue/wake-ups.ts';
import { Enqueuer } from './enqueuer.ts';
import type { CancelOptions, CancelResult } from './operate/cancel.ts';
import type { CancelFilter, CancelManyOptions, CancelManyResult } from './operate/cancel-many.ts';
import type { JobRecordOf } from './operate/job-record-of.ts';
import type { JobList, ListFilter, OwnFilter } from './operate/list.ts';
import type { RedriveFilter, RedriveOptions } from './operate/redrive.ts';
import type { RunNowManyResult, RunNowResult } from './operate/run-now.ts';
import type { QueueParts } from './queue-features.ts';
import type { QueueLimiting } from './queue-limits.ts';
import type { QueueWorkflows } from './queue-workflows.ts';
import type { QueueStats, StatsOptions } from './stats/queue-stats.ts';
import type { QueueVitals } from './stats/queue-vitals.ts';
import type { QueueOfFigures } from './stats/stats.ts';
import type { FinalRecordOf } from './wait/final-record.ts';
import type { WaitOptions } from './wait/wait-options.ts';

/**
 * The producing side of a queue: enqueues, finds, cancels and redrives jobs, and pauses queues. It holds no
 * connection: each method takes the caller's own Drizzle database or transaction first, and what it does
 * commits or rolls back with that. `TOwn` holds the values of the app's own columns.
 */
export class Queue<
  TOwn extends OwnColumns = OwnColumns,
  TSchedules = unknown,
  TLimits = unknown,
  TDb extends Executor = Executor,
  TWorkflows = unknown,
> extends Enqueuer<TOwn, TDb> {
  readonly #wakeUps: WakeUps | undefined;
  readonly #limits: QueueLimiting | undefined;
  readonly #figures: QueueOfFigures;
  readonly #toCheck: QueueParts<Queue>['toCheck'];
  /** The queue's schedules; `undefined` unless {@link createQueue} was given `schedulesIn(…)`. */
  readonly schedules: TSchedules;
  /** The queue's limits; `undefined` unless {@link createQueue} was given `limitsIn(…)`. */
  readonly limits: TLimits;
  /** The queue's workflows; `undefined` unless {@link createQueue} was given `workflowsIn(…)`. */
  readonly workflows: TWorkflows;
  readonly tables: QueueTables;
  /** As {@link createQueue} was given them, like the two below. */
  readonly around: Around | undefined;
  readonly keys: PgTable | undefined;
  readonly metrics: PgTable | undefined;

  constructor(given: QueueTables, parts: QueueParts<Queue> = {}) {
    const { around, keys, metrics, requireTransaction = false } = parts;
    checkSameOwnColumns(given.queueJobs, given.queueResults);
    const wakeUps = (parts.wakeUps ?? true) ? new WakeUps(wakeChannel(given)) : undefined;
    const limits = parts.limits?.({ tables: given, channel: wakeUps?.channel });
    const limited = limits?.statementTables ?? given;
    const workflows: QueueWorkflows | undefined = parts.workflows?.({
      tables: limited,
      channel: wakeUps?.channel,
      settings: () => settings,
    });
    const tables = workflows?.statementTables ?? limited;
    const maxPayloadBytes = parts.maxPayloadBytes ?? DEFAULT_MAX_PAYLOAD_BYTES;
    const checks = { maxPayloadBytes, requireTransaction, own: ownColumnsOf(tables.queueJobs) };
    const settings: EnqueueSettings = { tables, wakeUps, rules: keys, around: around?.enqueue, ...checks };
    super(settings);
    this.tables = tables;
    this.around = around;
    this.keys = keys?.table;
    this.metrics = metrics?.table;
    this.#wakeUps = wakeUps;
    this.#limits = limits;
    this.#figures = { tables, reported: metrics };
    this.#toCheck = parts.toCheck;
    const schedules = parts.schedules?.({
      tables,
      channel: wakeUps?.channel,
      maxPayloadBytes,
      enqueue: (db, job, payload) => insertOneAround(db, settings, job, payload),
    });
    // `createQueue` derives their types from the same options.
    this.schedules = schedules as TSchedules;
    this.limits = limits as TLimits;
    this.workflows = workflows as TWorkflows;
  }

  /** One job by id, live or finished, or `undefined`. With a definition: typed, and only of that kind. */
  find(db: Executor, id: number): Promise<(JobRecord & TOwn['select']) | undefined>;
  find<TJob extends JobDefinition>(
    db: Executor,
    job: TJob,
    id: number,
  ): Promise<JobRecordOf<TJob, TOwn['select']> | undefined>;
  async find(db: Executor, jobOrId: JobDefinition | number, id?: number): Promise<JobRecord | undefined> {
    checkExecutor('find', db);
    const { findJob } = await import('../queries/operate/find-job.ts'); // As list, below.
    if (typeof jobOrId === 'number') {
      if (id !== undefined)
        throw new TypeError('find: the arguments are in the wrong order; write find(db, job, id)');
      return await findJob(db, this.tables, checkId('find', jobOrId));
    }
    checkDefinition('find', jobOrId);
    const record = await findJob(db, this.tables, checkId('find', id));
    return record?.kind === jobOrId.kind ? record : undefined;
  }

  /**
   * Waits until a job has ended, and returns its final record. All who wait in this process through one
   * database share their statements: about 25 ms apart at first, later half a second.
   *
   * Under concurrency: a job that ended before the call is found at once. One that is redriven meanwhile is
   * waited for again. A lost connection only delays the return.
   *
   * @throws WaitTimeoutError when the time is over; the job goes on, and one can wait again
   * @throws JobGoneError when there is no such job, or it has ended without a kept result
   * @throws RangeError | TypeError before anything is sent, also for a transaction; a TypeError when the job
   * that has ended is of another kind
   */
  async waitFor<TJob extends JobDefinition>(
    db: Executor,
    job: TJob,
    id: number,
    options?: WaitOptions,
  ): Promise<FinalRecordOf<TJob, TOwn['select']>> {
    const { waitFor } = await import('./wait/wait-for.ts');
    // As for list: the kind was compared.
    return (await waitFor(db, this.tables, job, id, options)) as FinalRecordOf<TJob, TOwn['select']>;
  }

  /**
   * Live jobs and results in one list, newest id first, a page at a time. A job keeps its id for life, so one
   * that finishes between two pages is neither missed nor listed twice.
   */
  async list<TJob extends JobDefinition>(
    db: Executor,
    filter: ListFilter<TJob> & OwnFilter<TOwn['select']> = {},
  ): Promise<JobList<JobRecordOf<TJob, TOwn['select']>>> {
    const { list } = await import('./operate/list.ts'); // An app that only enqueues does not load it.
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
    const { cancel } = await import('./operate/cancel.ts');
    return await cancel(db, this.tables, id, options, this.#wakeUps?.channel);
  }

  /**
   * Pauses a queue until {@link resume}, across restarts. Within a second workers begin no more of its jobs
   * and give back what they claimed ahead; `drain` and `runNext` begin none either. Running jobs and
   * enqueueing go on. Takes effect at the commit. Returns `false` when it was already paused.
   */
  async pause(db: Executor, queue: string): Promise<boolean> {
    checkExecutor('pause', db);
    checkText('pause: queue', queue, MAX_NAME_BYTES);
    return await pauseQueue(db, this.tables, { queue, channel: this.#wakeUps?.channel });
  }

  /** Ends a queue's pause; workers learn of it within a second. Returns `false` when it was not paused. */
  async resume(db: Executor, queue: string): Promise<boolean> {
    checkExecutor('resume', db);
    checkText('resume: queue', queue, MAX_NAME_BYTES);
    return await resumeQueue(db, this.tables, { queue, channel: this.#wakeUps?.channel });
  }

  /** The paused queues, by name, and since when. */
  paused(db: Executor): Promise<PausedQueue[]> {
    return findPauses(db, this.tables);
  }

  /**
   * Puts discarded jobs back, one by id or many by filter (cancelled ones too, with `state`): due now, with
   * all their attempts again, under their old ids. A job whose unique key a live job has stays as it is and
   * is counted in `duplicates`.
   *
   * Under concurrency: two redrives of the same jobs put each back once. By batches, each is there as soon as
   * it is written, unless `db` is a transaction.
   */
  async redrive(
    db: Executor,
    which: number | (RedriveFilter & Partial<TOwn['select']>),
    options?: RedriveOptions,
  ): Promise<RedriveResult> {
    const { redrive } = await import('./operate/redrive.ts');
    return await redrive(db, this.tables, which, this.#wakeUps, options);
  }

  /**
   * Makes a scheduled job, or one that waits for its next attempt, due now. Nothing else of it changes, and
   * limits, pauses and the order of its group still apply. The result says what stood in the way.
   *
   * Under concurrency: against a claim, exactly one of the two wins, and the job runs once.
   */
  async runNow(db: Executor, id: number): Promise<RunNowResult> {
    const { runNow } = await import('./operate/run-now.ts');
    return await runNow(db, this.tables, id, this.#wakeUps);
  }

  /** As {@link runNow}, with up to 10,000 jobs: those that run, wait or have ended stay as they are. */
  async runNowMany(db: Executor, ids: readonly number[]): Promise<RunNowManyResult> {
    const { runNowMany } = await import('./operate/run-now.ts');
    return await runNowMany(db, this.tables, ids, this.#wakeUps);
  }

  /**
   * Does what {@link cancel} does, with all live jobs that match the filter and were enqueued before the
   * call. It works in batches. Each batch takes effect at once, unless `db` is a transaction.
   *
   * Under concurrency: as {@link cancel}, for each job. It waits for no lock; it tries again for 0.6 seconds.
   *
   * @throws RangeError | TypeError before anything is sent; the reason of an aborted signal
   */
  async cancelMany(
    db: Executor,
    filter: CancelFilter & Partial<TOwn['select']>,
    options: CancelManyOptions = {},
  ): Promise<CancelManyResult> {
    const { cancelMany } = await import('./operate/cancel-many.ts');
    return await cancelMany(db, this.tables, filter, options, this.#wakeUps?.channel);
  }

  /**
   * What there is to do by queue and kind, how old the oldest due job is, and, with `metrics`, rates and
   * percentiles. Under a time limit, for a quarter of a percent of the time, however often it is asked.
   *
   * Under concurrency: all who ask of one `db` share one result, which is ten minutes old at most.
   *
   * @throws RangeError | TypeError naming the option that is wrong; MissingMigrationError for a missing table
   */
  async stats(db: Database, options: StatsOptions = {}): Promise<QueueStats> {
    const { stats } = await import('./stats/stats.ts'); // As above.
    return await stats(db, this.#figures, options);
  }

  /** What alerts watch, each with what to do about it, the worst first. Costs and shares as {@link stats}. */
  async vitals(db: Database): Promise<QueueVitals> {
    const { vitals } = await import('./stats/vitals.ts'); // As above.
    return await vitals(db, this.#figures, this.#limits);
  }

  /** What is wrong with the database's set-up and what to do about it, errors first; empty if nothing is. */
  async check(db: Executor): Promise<Finding[]> {
    const { checkQueue } = await import('./check/check-queue.ts'); // A fifth of the producing side.
    const features = (await this.#toCheck?.(this)) ?? [];
    return await checkQueue(db, this.tables, { features, limits: this.#limits });
  }
}

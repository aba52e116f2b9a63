import type { QueryBuilders } from '../../skip-locked/query-builders.ts';
import {
  checkDefinition,
  type JobDefinition,
  type OutputInput,
  type PayloadInput,
} from '../job/definition.ts';
import type {
  EnqueueOptions,
  GivenOptions,
  LimitedEnqueueOptions,
  PlainEnqueueOptions,
} from '../job/enqueue-options.ts';
import type { StoredValue } from '../job/stored.ts';
import type { OwnColumns } from '../schema/own-columns.ts';
import { checkExecutor, checkOpen, checkTransaction, type Executor } from '../sql/executor.ts';
import type { EnqueueArguments, EnqueueEntry } from './enqueue/enqueue-arguments.ts';
import { type EnqueueSettings, enqueueMany, enqueueOne } from './enqueue/enqueue-around.ts';
import type { EnqueueFromArguments, SelectedRow, SelectOf } from './enqueue/enqueue-from.ts';
import type { EnqueueResult, LimitedEnqueueResult } from './enqueue/enqueue-jobs.ts';
import { type EnqueueQuery, enqueueQuery } from './enqueue/enqueue-query.ts';
import { rememberSettings } from './enqueue/settings-of.ts';
import type { WaitOptions } from './wait/wait-options.ts';

/** The part of a {@link Queue} by which jobs are put in, through a `TDb`. */
export class Enqueuer<TOwn extends OwnColumns = OwnColumns, TDb extends Executor = Executor> {
  readonly #settings: EnqueueSettings;

  constructor(settings: EnqueueSettings) {
    this.#settings = settings;
    rememberSettings(this, settings);
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
   * @throws QueueError for a transaction that has ended, where the driver knows it (node-postgres)
   */
  enqueue<TJob extends JobDefinition>(
    db: TDb,
    job: TJob,
    payload: PayloadInput<TJob>,
    options: LimitedEnqueueOptions & TOwn['insert'],
  ): Promise<LimitedEnqueueResult>;
  enqueue<TJob extends JobDefinition>(
    db: TDb,
    job: TJob,
    ...[payload, options]: EnqueueArguments<TJob, TOwn['insert']>
  ): Promise<EnqueueResult>;
  async enqueue<TJob extends JobDefinition>(
    db: TDb,
    job: TJob,
    ...[payload, options]: EnqueueArguments<TJob, TOwn['insert'], GivenOptions>
  ): Promise<LimitedEnqueueResult> {
    this.#check('enqueue', db);
    checkDefinition('enqueue', job);
    // The definition types an argument that may be omitted as `undefined`.
    return await enqueueOne(db, this.#settings, job, payload as PayloadInput<TJob>, options);
  }

  /**
   * Enqueues one job, waits until it has ended, and returns its output as it is stored. A worker elsewhere
   * runs it. For a `duplicate` it waits for the job that has the key. When the wait is over first, the job
   * goes on: {@link Queue.waitFor} waits again, by the error's `jobId`.
   *
   * @throws what {@link enqueue} throws; a TypeError for a transaction, since the job would begin at its
   * commit, and where no output or no job would come of it (`keepResult: false`, `throttle`)
   * @throws JobFailedError when the job was discarded or cancelled
   * @throws WaitTimeoutError | JobGoneError as {@link Queue.waitFor}, and the reason of an aborted signal
   */
  async run<TJob extends JobDefinition>(
    db: Executor,
    job: TJob,
    ...[payload, options]: EnqueueArguments<TJob, TOwn['insert'], EnqueueOptions & WaitOptions>
  ): Promise<StoredValue<OutputInput<TJob>>> {
    checkExecutor('run', db);
    checkDefinition('run', job);
    const { run } = await import('./wait/run.ts');
    // As in enqueue. The output is stored as the input of the definition's schema.
    const output = await run(db, this.#settings, job, payload as PayloadInput<TJob>, options);
    return output as StoredValue<OutputInput<TJob>>;
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
    checkExecutor('enqueueQuery', db);
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
    db: TDb,
    job: TJob,
    entries: readonly EnqueueEntry<TJob, TOwn['insert'], LimitedEnqueueOptions>[],
  ): Promise<LimitedEnqueueResult[]>;
  enqueueMany<TJob extends JobDefinition>(
    db: TDb,
    job: TJob,
    entries: readonly EnqueueEntry<TJob, TOwn['insert']>[],
  ): Promise<EnqueueResult[]>;
  async enqueueMany<TJob extends JobDefinition>(
    db: TDb,
    job: TJob,
    entries: readonly EnqueueEntry<TJob, TOwn['insert'], GivenOptions>[],
  ): Promise<LimitedEnqueueResult[]> {
    this.#check('enqueueMany', db);
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
    db: TDb,
    job: TJob,
    select: TSelect,
    ...[options]: EnqueueFromArguments<ReturnType<TSelect['as']>, TOwn['insert']>
  ): Promise<{ enqueued: number; duplicates: number }> {
    this.#check('enqueueFrom', db);
    checkDefinition('enqueueFrom', job);
    const { enqueueFrom } = await import('./enqueue/enqueue-from.ts'); // Most apps do not load it.
    return await enqueueFrom(db, this.#settings, job, select, options);
  }

  #check(caller: string, db: Executor): void {
    checkExecutor(caller, db);
    if (this.#settings.requireTransaction) checkTransaction(caller, db);
    checkOpen(caller, db);
  }
}

import { checkDate, checkInteger, checkText, MAX_NAME_BYTES } from '../../core/job/limits.ts';
import { type NewJob, newJob } from '../../core/job/new-job.ts';
import { shown } from '../../core/job/shown.ts';
import type { FeatureToCheck } from '../../core/queue/check/feature-to-check.ts';
import type { QueueOfSchedules } from '../../core/queue/queue-features.ts';
import { type OwnColumn, type OwnColumns, ownColumnsOf } from '../../core/schema/own-columns.ts';
import type { Executor } from '../../core/sql/executor.ts';
import { inGroup } from '../../core/sql/grouped-jobs.ts';
import { withOwn } from '../../core/sql/own-values.ts';
import { contextOf, inContext } from '../../core/sql/statement-context.ts';
import { QueueError } from '../../errors.ts';
import { CONTROL_ENTRY } from '../control/control-entry.ts';
import type { ControlTables, TickSettings } from '../control/index.ts';
import { checkSchedules } from './check-schedules.ts';
import { type ScheduleDefinition, type TickOptions, timingOf } from './define-schedule.ts';
import { findSchedule } from './queries/find-schedules.ts';
import { OVERLAP_KEY, tickMetadata } from './queries/fire-schedules.ts';
import { pauseSchedule, resumeSchedule, type ScheduleChange } from './queries/pause-schedule.ts';
import { removeSchedule } from './queries/remove-schedule.ts';
import { setSchedule } from './queries/set-schedule.ts';
import { listSchedules, readSchedules, type ScheduleFilter, type ScheduleList } from './schedule-list.ts';
import { type ScheduleRecord, ticksFrom, toScheduleRecord } from './schedule-record.ts';
import type { ScheduleTables } from './sql/schedule-tables.ts';
import type { NewSchedule } from './sql/stored-schedule.ts';

/** What {@link Schedules.runNow} has enqueued. */
export interface ScheduleRun {
  /** The job's id; for a `duplicate`, that of the live job. */
  readonly id: number;
  /** Whether nothing was enqueued: the schedule has `overlap: false`, and a job of it is live. */
  readonly duplicate: boolean;
  readonly outcome: 'enqueued' | 'duplicate';
}

/**
 * The schedules of a queue: `queue.schedules`. Each method takes the caller's own Drizzle database or
 * transaction first, and what it does commits or rolls back with that: workers notice it at the commit.
 */
export class Schedules<TOwn extends OwnColumns = OwnColumns> {
  /** @internal */
  readonly tables: ScheduleTables;
  readonly #queue: QueueOfSchedules;
  readonly #own: readonly OwnColumn[];

  /** @internal use {@link schedulesIn} */
  constructor(queue: QueueOfSchedules, queueSchedules: ControlTables['queueSchedules']) {
    this.#queue = queue;
    this.#own = ownColumnsOf(queue.tables.queueJobs);
    this.tables = inContext({ ...queue.tables, queueSchedules }, contextOf(queue.tables));
  }

  /**
   * Creates a schedule, or changes the one of this name. Workers that have a handler for its kind fire it.
   * With the same timing it keeps its place; with another it begins with the first tick after this moment,
   * and due ticks of the old one pass. A pause stays.
   *
   * Under concurrency: waits for another open transaction that has changed the same schedule.
   *
   * @throws InvalidPayloadError | RangeError | TypeError before anything is sent
   * @throws MissingMigrationError when the table is missing
   * @throws QueueError when workers declare a schedule of this name
   */
  async set(
    db: Executor,
    schedule: ScheduleDefinition<TickOptions & TOwn['insert']>,
  ): Promise<ScheduleRecord> {
    const made = await this.toStore('schedules.set', schedule);
    const stored = await setSchedule(db, this.tables, { schedule: made, channel: this.#queue.channel });
    if (stored !== undefined) return toScheduleRecord(stored);
    throw new QueueError(
      `schedules.set: '${made.name}' is declared by workers. Change it in their code, ` +
        'or remove it once no worker declares it any more',
    );
  }

  /** Removes a schedule, not its jobs; `false` if there is none. A declared one is back within a minute. */
  async remove(db: Executor, name: string): Promise<boolean> {
    return await removeSchedule(db, this.tables, checkName('remove', name));
  }

  /**
   * Pauses a schedule until {@link resume}, across restarts and changes; `false` when it was already paused.
   *
   * @throws QueueError when there is no such schedule
   */
  async pause(db: Executor, name: string): Promise<boolean> {
    checkName('pause', name);
    return changed('pause', name, await pauseSchedule(db, this.tables, name));
  }

  /**
   * Ends a schedule's pause; `false` when it was not paused. `catchUp` decides about the ticks in between.
   *
   * @throws QueueError when there is no such schedule
   */
  async resume(db: Executor, name: string): Promise<boolean> {
    checkName('resume', name);
    const { channel } = this.#queue;
    return changed('resume', name, await resumeSchedule(db, this.tables, { name, channel }));
  }

  /**
   * Enqueues a job of the schedule, paused or not; its ticks go on as they were. The job's metadata has the
   * schedule's name and, as its `tick`, the given time or the database's.
   *
   * @throws QueueError when there is no such schedule
   */
  async runNow(
    db: Executor,
    name: string,
    { tick }: { readonly tick?: Date | undefined } = {},
  ): Promise<ScheduleRun> {
    checkName('runNow', name);
    if (tick !== undefined) checkDate('schedules.runNow: tick', tick);
    const found = await findSchedule(db, this.tables, name);
    if (found === undefined) throw noSuch('runNow', name);
    const { queue, kind, payload, settings, overlap } = found.schedule;
    const { priority, maxAttempts, metadata, own, group, cost }: TickSettings = JSON.parse(settings);
    const job: NewJob = {
      queue,
      kind,
      payload,
      priority,
      maxAttempts,
      delayMs: 0,
      runAtMs: null,
      uniqueKey: overlap ? null : OVERLAP_KEY + name,
      metadata: JSON.stringify({
        ...metadata,
        ...tickMetadata(name, tick?.getTime() ?? found.nowMs),
      }),
      ...(this.#own.length > 0 && { own: this.#own.map(({ key }) => own[key]) }),
      ...(group !== undefined && { group }),
      ...(cost !== undefined && { cost }),
    };
    const { id, duplicate } = await this.#queue.enqueue(db, job, JSON.parse(payload));
    // Only an enqueue with a rule for its key may not know it.
    return { id: Number(id), duplicate, outcome: duplicate ? 'duplicate' : 'enqueued' };
  }

  /** One schedule by its name; `undefined` when there is none. */
  async find(db: Executor, name: string): Promise<ScheduleRecord | undefined> {
    const found = await findSchedule(db, this.tables, checkName('find', name));
    return found === undefined ? undefined : toScheduleRecord(found.schedule);
  }

  /** The schedules by name, with their next ticks, a page at a time. */
  async list(db: Executor, filter: ScheduleFilter = {}): Promise<ScheduleList> {
    return await listSchedules(db, this.tables, filter);
  }

  /** @internal The same by its place, for an address that must not say a name. */
  async listFrom(
    db: Executor,
    page: { readonly queues: readonly string[] | undefined; readonly offset: number; readonly limit: number },
  ): Promise<ScheduleList> {
    return await readSchedules(db, this.tables, page);
  }

  /**
   * The next ticks of a schedule as it was read: up to `count` of them, fewer where it ends, none while it is
   * paused. The first may lie in the past, until a worker fires it. Where this process does not know the zone
   * or the expression, it is the only one.
   *
   * @throws RangeError unless `count` is from 1 to 1,000
   */
  nextTicks(schedule: ScheduleRecord, count: number): Date[] {
    checkInteger('schedules.nextTicks: count', count, 1, 1_000);
    return ticksFrom(schedule, count);
  }

  /** What a definition is in the table. @throws as `enqueue` for a payload or an option @internal */
  async toStore(caller: string, schedule: ScheduleDefinition): Promise<NewSchedule> {
    if (typeof schedule !== 'object' || schedule === null || !('catchUp' in schedule)) {
      throw new TypeError(`${caller} takes what defineSchedule() returns, got ${shown(schedule)}`);
    }
    const { name, job, payload, catchUp, overlap, options } = schedule;
    // The definition was checked against its job; here the type of that job is lost.
    const made = await newJob(job, payload as never, options, this.#queue.maxPayloadBytes, this.#own);
    const values = withOwn(this.#own, made, options).own ?? [];
    const own = Object.fromEntries(
      this.#own.flatMap(({ key }, index) => (values[index] === undefined ? [] : [[key, values[index]]])),
    );
    // Also refuses a group of a queue that has none.
    const { priority, maxAttempts, metadata } = inGroup(this.#queue.tables, made);
    const { group, cost } = made;
    const plain = JSON.stringify({ priority, maxAttempts, own, group, cost });
    return {
      ...timingOf(schedule),
      name,
      queue: made.queue,
      kind: made.kind,
      payload: made.payload,
      settings: `${plain.slice(0, -1)},"metadata":${metadata}}`,
      catchUp,
      overlap,
    };
  }

  /** What `queue.check` looks for. @internal */
  get toCheck(): FeatureToCheck {
    const { queueSchedules } = this.tables;
    return {
      tables: [queueSchedules],
      without: 'no schedule can be set or fired',
      entry: CONTROL_ENTRY,
      factory: 'createControlTables',
      check: async (question) => await checkSchedules(question, this.tables),
    };
  }

  /** Where the workers of its queues are notified. @internal */
  get channel(): string | undefined {
    return this.#queue.channel;
  }
}

function checkName(method: string, name: string): string {
  return checkText(`schedules.${method}: name`, name, MAX_NAME_BYTES);
}

function changed(method: string, name: string, { changed, known }: ScheduleChange): boolean {
  if (!known) throw noSuch(method, name);
  return changed;
}

function noSuch(method: string, name: string): QueueError {
  return new QueueError(`schedules.${method}: there is no schedule '${name}'`);
}

import type { Runner } from '../../../core/sql/executor.ts';
import { faultPoint } from '../../../core/sql/fault-point.ts';
import { Condition } from '../../../core/time/condition.ts';
import { Doubling } from '../../../core/time/doubling.ts';
import { jitter } from '../../../core/time/jitter.ts';
import type { Retries } from '../../../core/time/retries.ts';
import { sleep } from '../../../core/time/sleep.ts';
import type { BackgroundPart } from '../../../core/worker/base/background.ts';
import type { WorkerEmitter } from '../../../core/worker/base/events.ts';
import { isAboutAccess, isAboutLocks, isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import type { Listener } from '../../../core/worker/presence/listener.ts';
import { MOST_BYTES, MOST_TICKS } from '../catch-up.ts';
import { declareSchedules } from '../queries/declare-schedules.ts';
import { type DueSchedule, findDueSchedules } from '../queries/find-due-schedules.ts';
import { type Firing as FiringOf, fireSchedules } from '../queries/fire-schedules.ts';
import { tidySchedules } from '../queries/tidy-schedules.ts';
import type { ScheduleTables } from '../sql/schedule-tables.ts';
import type { NewSchedule } from '../sql/stored-schedule.ts';
import { toFiring } from '../to-firing.ts';

export interface FiringOptions {
  readonly db: Runner;
  readonly tables: ScheduleTables;
  /** Where workers are notified of the jobs; `undefined`: nowhere. */
  readonly channel: string | undefined;
  readonly workerId: number;
  readonly declared: readonly NewSchedule[];
  readonly kinds: readonly string[];
  readonly listener: Pick<Listener, 'listening'>;
  readonly events: WorkerEmitter;
  readonly retries: Pick<Retries, 'sleep'>;
}

/** The most schedules in one look, and in one statement that fires, unless their jobs are more. */
const BATCH = 100;
/**
 * How often to look when no tick is near: a schedule may have been set whose notification was missed. With
 * its jitter it is less than a minute, after which `catchUp: 'none'` takes a first tick for missed.
 */
const LISTENING_LOOK_MS = 45_000;
/** Longer than the time to the next look. */
const HORIZON_MS = 2 * LISTENING_LOOK_MS;
const POLLING_LOOK_MS = 5_000;
/** Workers do not look at the same instant for a tick that all of them expect. */
const SPREAD_MS = 10;
/** After a look that could not fire what was due: another worker is at it, or a transaction of the app's. */
const AGAIN_MS = 250;
/** How often a worker looks whether what it declares is still what the table says: within a minute. */
const DECLARE_MS = 45_000;
/** After it could not write all of that: a tick was due just then, or a row was locked. */
const DECLARE_AGAIN_MS = 1_000;
const TIDY_MS = 3_600_000;
/** A declaration that no worker has repeated for this long is removed. */
const FORGET_MS = 7 * 24 * 3_600_000;
const MAX_RETRY_MS = 60_000;
/** How often the database must refuse a tick before a declaration may replace a schedule while it is due. */
const UNFIT_TIMES = 3;
const NONE: ReadonlySet<string> = new Set();
const NOTHING: Attempted = { fired: NONE, left: NONE };

/** Names of schedules. */
interface Attempted {
  readonly fired: ReadonlySet<string>;
  readonly left: ReadonlySet<string>;
}

interface Failed {
  /** How often. */
  readonly times: number;
  /** How often for a reason that does not pass by itself, as a right or a column that a migration brings. */
  readonly unfitTimes: number;
  readonly againMs: number;
}

/**
 * Fires the schedules that its worker declares, or that were set for its kinds. None leads: the worker that
 * first moves a schedule on has fired the tick. Sleeps until the next known tick, by the database's clock.
 */
export class Firing implements BackgroundPart {
  readonly #options: FiringOptions;
  readonly #alarm = new Condition();
  readonly #failed = new Map<string, Failed>();
  #declareMs = Number.NEGATIVE_INFINITY;
  #tidyMs = Number.NEGATIVE_INFINITY;

  constructor(options: FiringOptions) {
    this.#options = options;
  }

  /** Looks soon: a schedule may have been set. */
  wake(): void {
    this.#alarm.signal();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { events, retries } = this.#options;
    const delays = new Doubling(1_000, MAX_RETRY_MS);
    while (!signal.aborted) {
      try {
        const restMs = await this.look(signal);
        delays.reset();
        await this.#alarm.wait(restMs, signal);
        await sleep(Math.random() * SPREAD_MS, signal);
        // A signal from here on may tell of something that the next look does not see.
        this.#alarm.clear();
      } catch (error) {
        events.emit('error', { error, during: 'firing schedules' });
        await retries.sleep(jitter(delays.next()), signal);
      }
    }
  }

  /** Looks once; a failure is an `error` event. */
  async tryLook(signal: AbortSignal): Promise<void> {
    try {
      await this.look(signal);
    } catch (error) {
      this.#options.events.emit('error', { error, during: 'firing schedules' });
    }
  }

  /**
   * Fires what is due, before and after writing its declarations; returns the milliseconds to the next look.
   * @throws the driver's errors, when the database cannot be asked
   */
  async look(signal?: AbortSignal): Promise<number> {
    const nowMs = performance.now();
    let restMs = await this.#fireAll(signal);
    if (this.#options.declared.length > 0 && nowMs >= this.#declareMs) {
      const declared = await this.#declare(this.#options.declared, signal);
      this.#declareMs = nowMs + (declared ? jitter(DECLARE_MS) : DECLARE_AGAIN_MS);
      restMs = await this.#fireAll(signal);
    }
    if (nowMs >= this.#tidyMs) {
      this.#tidyMs = nowMs + jitter(TIDY_MS);
      await this.#tidy();
    }
    return this.#options.declared.length === 0 ? restMs : Math.min(restMs, this.#declareMs - nowMs);
  }

  /** Writes declarations in one statement, or by halves if that fails. Returns whether it wrote them all. */
  async #declare(schedules: readonly NewSchedule[], signal?: AbortSignal): Promise<boolean> {
    const { db, tables, workerId, events } = this.#options;
    const unfit = [...this.#failed].flatMap(([name, { unfitTimes }]) =>
      unfitTimes < UNFIT_TIMES ? [] : [name],
    );
    try {
      const { all, written } = await declareSchedules(db, tables, { workerId, schedules, unfit });
      // What was written may be fit.
      for (const name of written) this.#failed.delete(name);
      return all;
    } catch (error) {
      const isAboutRows = !isAboutTheServer(error) && !isAboutAccess(error);
      if (isAboutRows && schedules.length > 1) {
        // One that is locked or refused must not hold up the others, nor cost a statement for each of them.
        const middle = schedules.length >> 1;
        let all = true;
        for (const half of [schedules.slice(0, middle), schedules.slice(middle)]) {
          if (signal?.aborted) return false;
          all = (await this.#declare(half, signal)) && all;
        }
        return all;
      }
      if (!isAboutLocks(error)) events.emit('error', { error, during: 'declaring schedules' });
      return false;
    }
  }

  async #tidy(): Promise<void> {
    const { db, tables, declared } = this.#options;
    const names = declared.map(({ name }) => name);
    await tidySchedules(db, tables, { declared: names, renewMs: TIDY_MS, forgetMs: FORGET_MS });
  }

  /** Fires until nothing is due; returns how many milliseconds to rest. */
  async #fireAll(signal?: AbortSignal): Promise<number> {
    const passedOver = new Set<string>();
    let sinceMs = performance.now();
    for (;;) {
      const lookedMs = performance.now();
      const found = await this.#find(passedOver, lookedMs);
      const due = found.filter(({ dueInMs }) => dueInMs <= 0);
      const { fired, left } = due.length === 0 ? NOTHING : await this.#fire(due);
      if (signal?.aborted) return 0;
      // As long as something moves on there may be more, and locked ones may be free.
      if (fired.size > 0 && performance.now() - sinceMs > AGAIN_MS) {
        passedOver.clear();
        sinceMs = performance.now();
      }
      // As many as one statement fires, if all are locked, must not hide the others behind them.
      const isFull = due.length === BATCH || left.size > 0;
      if (isFull) for (const { name } of due) if (!fired.has(name) && !left.has(name)) passedOver.add(name);
      if (fired.size > 0 || isFull) continue;
      const next = found.find(({ dueInMs }) => dueInMs > 0)?.dueInMs ?? Number.POSITIVE_INFINITY;
      const { channel, listener } = this.#options;
      const isTold = channel !== undefined && listener.listening;
      const lookMs = jitter(isTold ? LISTENING_LOOK_MS : POLLING_LOOK_MS);
      const againMs = due.length > 0 || passedOver.size > 0 ? AGAIN_MS : this.#nextTryMs(lookedMs);
      return Math.max(Math.min(next, lookMs, againMs), 0);
    }
  }

  async #find(passedOver: ReadonlySet<string>, lookedMs: number): Promise<DueSchedule[]> {
    const { db, tables, declared, kinds } = this.#options;
    const failed = [...this.#failed].flatMap(([name, { againMs }]) => (againMs > lookedMs ? [name] : []));
    return await findDueSchedules(db, tables, {
      declared: declared.map(({ name }) => name),
      kinds,
      except: [...failed, ...passedOver],
      horizonMs: HORIZON_MS,
      limit: BATCH,
    });
  }

  /**
   * Fires what is due in one statement, or one by one if that fails. Returns the schedules that have
   * advanced, and those that were left for another statement.
   * @throws when the failure has nothing to do with a schedule
   */
  async #fire(due: readonly DueSchedule[]): Promise<Attempted> {
    const firings: FiringOf[] = [];
    const left = new Set<string>();
    let ticks = 0;
    let bytes = 0;
    for (const schedule of due) {
      if (ticks >= MOST_TICKS || bytes >= MOST_BYTES) {
        left.add(schedule.name);
        continue;
      }
      try {
        const firing = toFiring(schedule);
        firings.push(firing);
        ticks += firing.ticks.length;
        bytes += firing.ticks.length * schedule.jobBytes;
      } catch (error) {
        // A zone that this runtime does not know must not hold up the others.
        this.#fail(schedule.name, error);
      }
    }
    return { fired: await this.#sendAll(firings), left };
  }

  async #sendAll(firings: readonly FiringOf[]): Promise<ReadonlySet<string>> {
    if (firings.length === 0) return NONE;
    await faultPoint('schedules: found');
    try {
      return new Set(await this.#send(firings));
    } catch (error) {
      if (isAboutTheServer(error)) throw error;
      const [first, ...others] = firings;
      if (first !== undefined && others.length === 0) this.#fail(first.name, error);
      return others.length === 0 ? NONE : await this.#sendEach(firings);
    }
  }

  async #sendEach(firings: readonly FiringOf[]): Promise<ReadonlySet<string>> {
    const moved = new Set<string>();
    const refusals = new Map<string, unknown>();
    for (const firing of firings) {
      try {
        for (const name of await this.#send([firing])) moved.add(name);
      } catch (error) {
        if (isAboutTheServer(error)) throw error;
        refusals.set(firing.name, error);
      }
    }
    const [first] = refusals.values();
    if (refusals.size === firings.length && [...refusals.values()].every(isAboutAccess)) {
      // The worker's role lacks a right, or the database a migration: one error says so, for all of them.
      const share = jitter(1);
      for (const [name, error] of refusals) this.#putOff(name, error, share);
      this.#options.events.emit('error', { error: first, during: 'firing schedules' });
    } else {
      for (const [name, error] of refusals) this.#fail(name, error);
    }
    return moved;
  }

  async #send(firings: readonly FiringOf[]): Promise<readonly string[]> {
    const { db, tables, channel, events } = this.#options;
    const fired = await fireSchedules(db, tables, firings, channel);
    await faultPoint('schedules: fired');
    for (const { name, ids } of fired) {
      this.#failed.delete(name);
      const { ticks = [] } = firings.find((firing) => firing.name === name) ?? {};
      if (ticks.length === 0) continue;
      events.emit('fired', { schedule: name, ticks: ticks.map((tick) => new Date(tick)), ids });
    }
    return fired.map(({ name }) => name);
  }

  #fail(name: string, error: unknown): void {
    this.#putOff(name, error, jitter(1));
    // An open transaction has yet to decide whether the job that it must not overlap is still live.
    if (isAboutLocks(error)) return;
    this.#options.events.emit('error', { error, during: `firing the schedule '${name}'` });
  }

  /** @param share what it waits of a retry's time: those with the same one are tried again together */
  #putOff(name: string, error: unknown, share: number): void {
    const { times: before = 0, unfitTimes = 0 } = this.#failed.get(name) ?? {};
    const times = isAboutLocks(error) ? 0 : before + 1;
    const againMs = performance.now() + share * Math.min(500 * 2 ** times, MAX_RETRY_MS);
    const isPassing = isAboutLocks(error) || isAboutAccess(error);
    this.#failed.set(name, { times, unfitTimes: isPassing ? unfitTimes : unfitTimes + 1, againMs });
  }

  /** How many milliseconds until a failed one is tried again that a look at `lookedMs` has left out. */
  #nextTryMs(lookedMs: number): number {
    const times = [...this.#failed.values()].map(({ againMs }) => againMs);
    // Its time may have come while the look was under way, which has left it out all the same.
    return Math.min(...times.filter((againMs) => againMs > lookedMs)) - performance.now();
  }
}

/**
 * What a schedule has to do, as plain data: its ticks are walked one by one from the first, as the documentation says, and without the
 * library's arithmetic.
 */

export interface ModelTiming {
  readonly everyMs: number;
}

/** What is set or declared. */
export interface NewModelSchedule extends ModelTiming {
  readonly name: string;
  readonly queue: string;
  readonly kind: string;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly catchUp: 'latest' | 'all' | 'none';
  readonly overlap: boolean;
}

export interface ModelSchedule extends NewModelSchedule {
  paused: boolean;
  /** Microseconds since 1970; or when the statement ran that has just been run, or the look that came before a firing. */
  passedAt: number | 'now' | { readonly sinceUs: number };
  /** Whether a worker has found out when its next tick is. */
  armed: boolean;
  declaredBy: number | null;
  /** Another for each change: what was read before it is out of date. */
  version: number;
}

const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

/** The first tick of each schedule: long ago, and so that no tick comes while a walk lasts. */
export const FIRST_TICK_MS = Math.floor(Date.now() / 1_000) * 1_000 - 40 * DAY_MS - 12 * HOUR_MS;

export class ScheduleModel {
  readonly schedules = new Map<string, ModelSchedule>();
  #versions = 0;

  /** Answers whether it is allowed: what is declared in code is changed there. */
  set(made: NewModelSchedule): boolean {
    if ((this.schedules.get(made.name)?.declaredBy ?? null) !== null) return false;
    this.#write(made, null, 'now');
    return true;
  }

  /** Answers whether all was written that this worker wants to say, which was not before `sinceUs`. */
  declare(
    made: readonly NewModelSchedule[],
    workerId: number,
    living: ReadonlySet<number>,
    { nowUs, sinceUs }: { readonly nowUs: number; readonly sinceUs: number },
  ): boolean {
    let all = true;
    for (const schedule of made) {
      const standing = this.schedules.get(schedule.name);
      const by = standing?.declaredBy ?? null;
      if (by !== null && by >= workerId && living.has(by)) continue;
      const losesTick =
        standing !== undefined &&
        standing.everyMs !== schedule.everyMs &&
        !standing.paused &&
        isDue(standing, nowUs);
      if (losesTick) all = false;
      else this.#write(schedule, workerId, { sinceUs });
    }
    return all;
  }

  pause(name: string, paused: boolean): boolean | undefined {
    const schedule = this.schedules.get(name);
    if (schedule === undefined) return undefined;
    const changed = schedule.paused !== paused;
    schedule.paused = paused;
    return changed;
  }

  remove(name: string): boolean {
    return this.schedules.delete(name);
  }

  /** It is as if nobody had looked for so many days; answers when its next tick is, in milliseconds. */
  miss(schedule: ModelSchedule, days: number): { passedMs: number; nextMs: number } {
    const passedMs = Math.floor(known(schedule) / 1_000) - days * DAY_MS;
    schedule.passedAt = passedMs * 1_000;
    schedule.version = ++this.#versions;
    return { passedMs, nextMs: schedule.armed ? nextTickMs(schedule) : passedMs };
  }

  /** What a worker fires that declares these names and serves these kinds. */
  due(names: ReadonlySet<string>, kinds: readonly string[], nowUs: number): ModelSchedule[] {
    return [...this.schedules.values()].filter(
      (schedule) =>
        !schedule.paused &&
        isDue(schedule, nowUs) &&
        (names.has(schedule.name) || (schedule.declaredBy === null && kinds.includes(schedule.kind))),
    );
  }

  /** Moves it on, as of a look that was not before `sinceUs`; answers the ticks that fire, in milliseconds. */
  fire(schedule: ModelSchedule, nowUs: number, sinceUs: number): number[] {
    const missed: number[] = [];
    for (let tick = FIRST_TICK_MS; tick * 1_000 <= nowUs; tick += schedule.everyMs) {
      if (tick * 1_000 > known(schedule)) missed.push(tick);
    }
    schedule.passedAt = { sinceUs };
    schedule.armed = true;
    schedule.version = ++this.#versions;
    // None of them is less than a minute late.
    if (schedule.catchUp === 'none') return [];
    return schedule.catchUp === 'latest' ? missed.slice(-1) : missed;
  }

  #write(made: NewModelSchedule, declaredBy: number | null, passedAt: ModelSchedule['passedAt']): void {
    const standing = this.schedules.get(made.name);
    const keepsPlace = standing?.everyMs === made.everyMs;
    this.schedules.set(made.name, {
      ...made,
      paused: standing?.paused ?? false,
      passedAt: keepsPlace ? standing.passedAt : passedAt,
      armed: keepsPlace && standing.armed,
      declaredBy,
      version: ++this.#versions,
    });
  }
}

/** One whose first tick nobody knows is to be looked at. */
function isDue(schedule: ModelSchedule, nowUs: number): boolean {
  return !schedule.armed || nextTickMs(schedule) * 1_000 <= nowUs;
}

export function nextTickMs(schedule: ModelSchedule): number {
  let tick = FIRST_TICK_MS;
  while (tick * 1_000 <= known(schedule)) tick += schedule.everyMs;
  return tick;
}

function known({ passedAt }: ModelSchedule): number {
  if (typeof passedAt !== 'number') throw new Error('the time was not read back from the database');
  return passedAt;
}

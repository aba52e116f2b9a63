import { checkDefinition, type JobDefinition, type PayloadInput } from '../../core/job/definition.ts';
import { type GivenOptions, type JobSettings, OPTIONS_OF_ONE } from '../../core/job/enqueue-options.ts';
import { checkOptions, namesOf } from '../../core/job/known-options.ts';
import {
  checkBoolean,
  checkDate,
  checkDurationMs,
  checkText,
  LARGEST_MAX_PAYLOAD_BYTES,
  MAX_NAME_BYTES,
} from '../../core/job/limits.ts';
import { newJob } from '../../core/job/new-job.ts';
import { shown } from '../../core/job/shown.ts';
import type { CatchUp } from '../control/index.ts';
import { CATCH_UPS } from './catch-up.ts';
import { parseCron } from './cron.ts';
import { ticksOf } from './timing.ts';
import { zoneOf } from './zone.ts';

/** What each job of a schedule is enqueued with, beside its payload; the app's own columns as well. */
export type TickOptions = JobSettings;

/** With columns whose names only a queue knows; it checks them where the schedule is given to it. */
type AnyTickOptions = TickOptions &
  Readonly<Record<string, unknown>> & {
    readonly [K in Exclude<keyof GivenOptions, keyof JobSettings>]?: undefined;
  };

/** When a schedule ticks: by a cron expression, or in intervals. */
export type ScheduleTiming =
  | {
      /**
       * Five fields: minute, hour, day of month, month, day of week; or six, with the seconds first. Each is
       * a list of stars, values, ranges and steps, such as `0 8-18/2 * * mon-fri`.
       */
      cron: string;
      /**
       * The IANA name of the zone in which `cron` is meant. Where its clock is set forward over a time, that
       * fires at the end of the gap; where it is set back, a time fires once. An expression that names every
       * hour, such as one with `*` there, follows elapsed time.
       * @default 'UTC'
       */
      timeZone?: string | undefined;
      every?: undefined;
    }
  | {
      /**
       * Milliseconds from tick to tick, 1,000 to one century, counted from `startsAt` or else from the second
       * in which the schedule was created. It does not drift.
       */
      every: number;
      cron?: undefined;
      /** An interval has no zone. */
      timeZone?: undefined;
    };

/** The options of {@link defineSchedule}. */
export type ScheduleOptions<TJob extends JobDefinition, TOptions extends AnyTickOptions> = ScheduleTiming &
  (undefined extends PayloadInput<TJob>
    ? { payload?: PayloadInput<TJob> }
    : { payload: PayloadInput<TJob> }) & {
    /** The kind of its jobs. */
    job: TJob;
    /** What happens to ticks that were not fired in time: see {@link CatchUp}. @default 'latest' */
    catchUp?: CatchUp | undefined;
    /** Whether a tick fires while a job of an earlier one is live; with `false` it passes. @default true */
    overlap?: boolean | undefined;
    /** No tick comes before. @default when it is created */
    startsAt?: Date | undefined;
    /** No tick comes after. @default never */
    endsAt?: Date | undefined;
    /** What each job is enqueued with. @default what the definition says */
    options?: TOptions | undefined;
  };

const OPTIONS = namesOf<ScheduleOptions<JobDefinition, AnyTickOptions>>({
  job: true,
  payload: true,
  cron: true,
  every: true,
  timeZone: true,
  catchUp: true,
  overlap: true,
  startsAt: true,
  endsAt: true,
  options: true,
});

/** A schedule: made by {@link defineSchedule}, and given to a worker or to `queue.schedules.set`. */
export interface ScheduleDefinition<TOptions = TickOptions> {
  readonly name: string;
  readonly job: JobDefinition;
  readonly payload: unknown;
  readonly cron: string | undefined;
  readonly every: number | undefined;
  readonly timeZone: string;
  readonly catchUp: CatchUp;
  readonly overlap: boolean;
  readonly startsAt: Date | undefined;
  readonly endsAt: Date | undefined;
  readonly options: TOptions;
}

/**
 * Defines a schedule: jobs of one kind, again and again. Each tick enqueues one job, whose metadata says the
 * `schedule` and the `tick`.
 *
 * ```ts
 * const nightly = defineSchedule('nightly-report', {
 *   job: report, payload: { kind: 'daily' }, cron: '0 3 * * *', timeZone: 'Europe/Vienna',
 * });
 * ```
 *
 * @param name what it is known by in its table, at most 200 bytes; another name is another schedule
 * @throws TypeError | RangeError | UnknownKindError when an option is wrong, or nothing would ever fire
 * @throws InvalidPayloadError, unless the payload's schema is asynchronous: then `set` and a worker's `start`
 * reject with it
 */
export function defineSchedule<
  TJob extends JobDefinition,
  const TOptions extends AnyTickOptions = Record<never, never>,
>(name: string, schedule: ScheduleOptions<TJob, TOptions>): ScheduleDefinition<TOptions> {
  checkText('defineSchedule: name', name, MAX_NAME_BYTES);
  const what = (option: string) => `defineSchedule('${name}'): ${option}`;
  const {
    job,
    payload,
    cron,
    every,
    timeZone = 'UTC',
    startsAt,
    endsAt,
  } = checkOptions(what('options'), schedule, OPTIONS);
  const { catchUp = 'latest', overlap = true } = schedule;
  checkDefinition(`defineSchedule('${name}')`, job);
  if ((cron === undefined) === (every === undefined)) {
    throw new TypeError(`${what('cron or every')} must be given, and not both`);
  }
  if (every !== undefined && schedule.timeZone !== undefined) {
    throw new TypeError(
      `${what('timeZone')} only applies to cron: an interval is the same in every time zone`,
    );
  }
  zoneOf(what('timeZone'), timeZone);
  if (cron !== undefined) parseCron(what('cron'), cron);
  if (!CATCH_UPS.includes(catchUp)) {
    throw new TypeError(`${what('catchUp')} must be one of ${CATCH_UPS.join(', ')}; got ${shown(catchUp)}`);
  }
  const defined = Object.freeze({
    name,
    job,
    payload,
    cron,
    every: every === undefined ? undefined : checkDurationMs(what('every'), every, 1_000),
    timeZone,
    catchUp,
    overlap: checkBoolean(what('overlap'), overlap),
    startsAt: startsAt === undefined ? undefined : checkDate(what('startsAt'), startsAt),
    endsAt: endsAt === undefined ? undefined : checkDate(what('endsAt'), endsAt),
    // The default of the type parameter is the type of what is left out.
    options: (schedule.options ?? {}) as TOptions,
  });
  if (startsAt !== undefined && endsAt !== undefined) {
    const ticks = ticksOf(timingOf(defined), startsAt.getTime());
    if (ticks.after(startsAt.getTime() - 1) === undefined) {
      throw new RangeError(
        `${what('endsAt')} is before the first tick after startsAt, so the schedule would never fire`,
      );
    }
  }
  const ofOne = Object.keys(defined.options).find((name) => OPTIONS_OF_ONE.has(name));
  if (ofOne !== undefined) {
    throw new TypeError(
      `${what('options')} cannot have ${ofOne}: each tick enqueues a job that is due at once. With ` +
        'overlap: false none is enqueued while the one before is live',
    );
  }
  // Checked again, with the limit and the columns of its queue, when it is stored.
  const given = Object.keys(defined.options).map((key) => ({ key }));
  const made = newJob(job, payload as PayloadInput<TJob>, defined.options, LARGEST_MAX_PAYLOAD_BYTES, given);
  if ('then' in made) made.then(undefined, () => undefined);
  return defined;
}

/** When a definition ticks, as it is stored. */
export function timingOf({
  cron,
  every,
  timeZone,
  startsAt,
  endsAt,
}: Pick<ScheduleDefinition, 'cron' | 'every' | 'timeZone' | 'startsAt' | 'endsAt'>) {
  return {
    cron: cron ?? null,
    everyMs: every ?? null,
    timeZone,
    startsAtMs: startsAt?.getTime() ?? null,
    endsAtMs: endsAt?.getTime() ?? null,
  };
}

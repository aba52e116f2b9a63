import { InvalidArgumentError } from 'commander';
import { isoTime, timeAgo } from '../filter/read-value.ts';
import { misused } from './failure.ts';

/** The value of an option that may be given once: the last of two would silently win. */
export function once<T>(read: (text: string) => T): (text: string, previous: T | undefined) => T {
  return (text, previous) => {
    if (previous !== undefined) throw new InvalidArgumentError('It was given twice.');
    return read(text);
  };
}

/** A text, which an empty variable of a shell is not. */
export const text = once((given) => {
  if (given === '') throw new InvalidArgumentError('It is empty.');
  return given;
});

export function integer(least: number, most: number) {
  return once((given) => {
    const value = Number(given);
    if (/^\d+$/.test(given) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`It must be a whole number ${range}.`);
  });
}

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Milliseconds, of a text such as `90s` or `2h`. */
export const durationMs = once((given) => {
  const ms = durationOf(given);
  if (ms !== undefined) return ms;
  throw new InvalidArgumentError('It must be a duration such as 90s, 15min, 2h or 3d.');
});

/** As long as a timer can wait, in whole days. */
const MOST_WORK_MS = 24 * 86_400_000;

/** For how long to work: no time at all is a mistake. */
export const workMs = once((given) => {
  const ms = durationOf(given);
  if (ms !== undefined && ms >= 1 && ms <= MOST_WORK_MS) return ms;
  throw new InvalidArgumentError('It must be a duration from 1ms to 24d, such as 50s.');
});

const LEAST_PAUSE_MS = 10;
const MOST_PAUSE_MS = 86_400_000;

/** How often to look: not without a pause, and no longer than a timer can wait. */
export const pauseMs = once((given) => {
  const ms = durationOf(given);
  if (ms !== undefined && ms >= LEAST_PAUSE_MS && ms <= MOST_PAUSE_MS) return ms;
  throw new InvalidArgumentError('It must be a duration from 10ms to 1d, such as 5s.');
});

/** A time: ISO 8601, or how long ago, such as `2h`. */
export const time = once((given) => {
  const ago = durationOf(given);
  const date = ago === undefined ? isoTime(given) : timeAgo(ago);
  if (date !== undefined) return date;
  throw new InvalidArgumentError(
    'It must be a time such as 2026-11-20T10:00:00Z, or how long ago, such as 2h.',
  );
});

/** When something is to happen: a duration as of {@link time} would be in the past. */
export const laterTime = once((given) => {
  if (durationOf(given) !== undefined)
    throw new InvalidArgumentError(
      `It must be a time such as 2026-11-20T10:00:00Z; for ${given} from now on, use --delay.`,
    );
  const date = isoTime(given);
  if (date !== undefined) return date;
  throw new InvalidArgumentError('It must be a time such as 2026-11-20T10:00:00Z.');
});

function durationOf(given: string): number | undefined {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)\s*([a-z]+)$/.exec(given) ?? [];
  const ms = UNITS[unit];
  return amount === undefined || ms === undefined ? undefined : Math.round(Number(amount) * ms);
}

/** A value of JSON. */
export const jsonValue = once((given): unknown => parsedJson(given, (why) => new InvalidArgumentError(why)));

export function parsedJson(given: string, refuse: (why: string) => Error): unknown {
  try {
    return JSON.parse(given);
  } catch (error) {
    throw refuse(`It must be JSON (${error instanceof Error ? error.message : String(error)}).`);
  }
}

export function oneOf<T extends string>(...values: readonly T[]) {
  return once((given): T => {
    const found = values.find((value) => value === given);
    if (found !== undefined) return found;
    throw new InvalidArgumentError(`It must be one of ${values.join(', ')}.`);
  });
}

/** Collects the values of an option that may be given again. */
export function several(given: string, previous: readonly string[] = []): readonly string[] {
  // As of a variable of a shell that was never set.
  if (given === '') throw new InvalidArgumentError('It is empty.');
  return [...previous, given];
}

/** The ids of jobs, each once. @throws Failure for what is none */
export function idsOf(args: readonly string[]): number[] {
  return [...new Set(args.map((each) => idOf(each)))];
}

export function idOf(given: string, of: 'job' | 'flow' = 'job'): number {
  const id = Number(given.replace(/^#/, ''));
  if (/^#?\d+$/.test(given) && id >= 1 && Number.isSafeInteger(id)) return id;
  throw misused(
    `'${given}' is not a ${of} id; ${of} ids are whole numbers from 1 to ${Number.MAX_SAFE_INTEGER}`,
  );
}

import { Cron } from 'croner';
import { shown } from '../../core/job/shown.ts';

/** A cron expression as a list of wall-clock times, without any time zone. */
export interface CronExpression {
  /** Whether it names every hour: it then follows elapsed time where a clock is changed. */
  readonly everyHour: boolean;
  /** The first match after a wall-clock time, both written as if they were UTC. */
  next(wallMs: number): number | undefined;
}

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Names for the values from `min` on. */
  readonly names?: readonly string[];
}

const FIELDS: readonly Field[] = [
  { name: 'second', min: 0, max: 59 },
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of month', min: 1, max: 31 },
  {
    name: 'month',
    min: 1,
    max: 12,
    names: ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'],
  },
  // 0 and 7 are both Sunday.
  { name: 'day of week', min: 0, max: 7, names: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] },
];

/** Longer than any expression that a person writes. */
const MAX_LENGTH = 1_000;

/** Any time will do to search from: matches repeat at the latest after 400 years. */
const LONG_AGO = Date.UTC(2000, 0, 1);

/**
 * Reads an expression of five fields (minute, hour, day of month, month, day of week) or six (seconds first).
 * Each is a list of stars, values and ranges (`a-b`), the stars and ranges with a step after `/` if need be;
 * months and weekdays have names. Where both days are restricted, either will do.
 *
 * croner matches wall-clock times as if they were UTC, where no clock is ever changed: what it does in other
 * zones differs from what people know of cron.
 *
 * @throws TypeError naming the field that is wrong, or that the expression never fires
 */
export function parseCron(what: string, expression: string): CronExpression {
  if (typeof expression !== 'string' || expression.length > MAX_LENGTH) {
    throw new TypeError(`${what} must be a cron expression, such as '0 3 * * *'; got ${shown(expression)}`);
  }
  const texts = expression.trim().split(/\s+/);
  if (texts.length !== 5 && texts.length !== 6) {
    throw new TypeError(
      `${what} must have five fields (minute, hour, day of month, month, day of week), ` +
        `or six with the seconds first; got ${shown(expression)}`,
    );
  }
  const fields = FIELDS.slice(-texts.length);
  const values = fields.map((field, index) => valuesOf(what, field, texts[index] ?? ''));
  const cron = new Cron(texts.join(' '), { utcOffset: 0, mode: '5-or-6-parts' });
  const next = (wallMs: number) => cron.nextRun(new Date(wallMs))?.getTime();
  if (next(LONG_AGO) === undefined) {
    const [day, month] = texts.slice(-3);
    throw new TypeError(
      `${what} never fires: its day of month '${day}' does not exist in its month '${month}'`,
    );
  }
  return { everyHour: values.at(-4)?.size === 24, next };
}

/** The values that a field names. */
function valuesOf(what: string, field: Field, text: string): ReadonlySet<number> {
  const values = new Set<number>();
  for (const item of text.split(',')) {
    const [, first, last, step] = /^(\*|\w+)(?:-(\w+))?(?:\/(\d+))?$/.exec(item) ?? [];
    const low = first === '*' ? field.min : numberOf(field, first);
    const high = first === '*' ? field.max : last === undefined ? low : numberOf(field, last);
    const isRange = first === '*' ? last === undefined : last !== undefined;
    const steps = step === undefined || (isRange && Number(step) >= 1 && Number(step) <= field.max);
    if (low !== undefined && high !== undefined && low <= high && (isRange || first !== '*') && steps) {
      for (let value = low; value <= high; value += Number(step ?? 1)) values.add(value);
      continue;
    }
    const names = field.names === undefined ? '' : `, or ${field.names[0]} to ${field.names.at(-1)}`;
    throw new TypeError(
      `${what}: the ${field.name} '${text}' must be a list of *, ` +
        `numbers from ${field.min} to ${field.max}${names}, ranges a-b, and steps */n or a-b/n`,
    );
  }
  return values;
}

function numberOf({ min, max, names }: Field, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const named = names?.indexOf(text.toLowerCase()) ?? -1;
  if (named >= 0) return min + named;
  const value = /^\d{1,2}$/.test(text) ? Number(text) : Number.NaN;
  return value >= min && value <= max ? value : undefined;
}

import type { PayloadInput } from '../../index.ts';
import {
  checkInteger,
  type EnqueueSettings,
  type GivenOptions,
  inGroup,
  MAX_ATTEMPTS,
  MAX_PRIORITY,
  type NewJob,
  newJob,
  withOwn,
} from '../../internal.ts';
import type { ReadJob } from './foreign-job.ts';
import type { LeftJob } from './import-report.ts';
import type { ImportRule } from './mapping.ts';

/** A job that can be inserted, and what it was. */
export interface ImportedJob {
  readonly read: ReadJob;
  readonly job: NewJob;
  /** As an enqueue would have been given it. */
  readonly payload: unknown;
  /** Whether it had more attempts there than a job can have here. */
  readonly bounded: boolean;
  /** `undefined`: when it is inserted here. */
  readonly createdAt: Date | undefined;
}

/** Checks a job with its rule. Nothing that the rule's functions or the definition throw passes on. */
export async function newImportedJob(
  read: ReadJob,
  rule: ImportRule,
  settings: EnqueueSettings,
): Promise<ImportedJob | LeftJob> {
  const { id, name } = read;
  if (read.unfit !== undefined) return { id, name, why: 'unfit', message: read.unfit };
  if (read.serial !== undefined && rule.options === undefined) {
    return { id, name, why: 'unfit', message: runsAlone(read.serial) };
  }
  try {
    const { tables, own, maxPayloadBytes } = settings;
    const given = givenBy(rule, read);
    const payload = payloadOf(read, rule);
    const merged: GivenOptions = { ...carriedOver(read, rule), ...given };
    refuseRules(merged);
    // A rule may take the key away.
    const options = merged.uniqueKey === undefined ? { ...merged, unique: undefined } : merged;
    // What a function has made is checked, whatever its type says.
    const made = await newJob(
      rule.job,
      payload as PayloadInput<typeof rule.job>,
      options,
      maxPayloadBytes,
      own,
    );
    if (made.maxAttempts <= checkInteger('Its attempts', read.attempts, 0, MAX_ATTEMPTS)) {
      throw new RangeError(`It has used ${read.attempts} of ${made.maxAttempts} attempts`);
    }
    refuseLate(made.runAtMs, rule.job.deadlineMs);
    const job = inGroup(
      tables,
      withOwn(own, carriesItsJson(rule, payload, read) ? { ...made, payload: read.json } : made, options),
    );
    return {
      read,
      job,
      payload,
      bounded: given.maxAttempts === undefined && attemptsOf(read, rule) > MAX_ATTEMPTS,
      // A deadline is counted from the creation, and would be over for what has waited there for long.
      createdAt: rule.job.deadlineMs === undefined ? read.createdAt : undefined,
    };
  } catch (error) {
    return { id, name, why: 'invalid', message: error instanceof Error ? error.message : String(error) };
  }
}

function runsAlone(serial: string): string {
  return (
    `It runs one at a time with the others of '${serial}'. Say in the rule's \`options\` what replaces ` +
    'that here: (job) => ({ group: job.serial }) in a queue with groups of concurrency 1, or {} for nothing'
  );
}

/** What the rule says; `undefined` says nothing, but of the key that there is none. */
function givenBy({ options }: ImportRule, read: ReadJob): GivenOptions {
  const given = options?.(read) ?? {};
  if (given instanceof Promise) throw new TypeError('importJobs: options must not return a promise');
  return Object.fromEntries(
    Object.entries(given).filter(([name, value]) => value !== undefined || name === 'uniqueKey'),
  );
}

function payloadOf(read: ReadJob, { job, payload }: ImportRule): unknown {
  if (payload !== undefined) return payload(read.data, read);
  // What the others store for a job without a payload.
  return job.payload === undefined && isEmpty(read.data) ? undefined : read.data;
}

/**
 * Matches each number that a column of type `json` holds and one of `jsonb` refuses, with all that is
 * inserted beside it, and some that it takes.
 */
const BEYOND_JSONB = /\d[eE][+-]?\d{4}|\d{15000}/;

/**
 * Whether the stored payload is the text from there. Serialized again it would lose digits: JavaScript reads
 * 1234567890123456789 as 1234567890123456800. The definition has checked the value.
 */
function carriesItsJson({ payload }: ImportRule, carried: unknown, { json }: ReadJob): boolean {
  return payload === undefined && carried !== undefined && !BEYOND_JSONB.test(json);
}

/** A job that is due behind its deadline would be discarded without an attempt. */
function refuseLate(runAtMs: number | null, deadlineMs: number | undefined): void {
  if (runAtMs === null || deadlineMs === undefined || runAtMs < Date.now() + deadlineMs) return;
  throw new RangeError(
    `It is due at ${new Date(runAtMs).toISOString()}, after its deadline: ` +
      `the deadlineMs of its definition, ${deadlineMs}, counts from the import`,
  );
}

function isEmpty(data: unknown): boolean {
  return data === null || (typeof data === 'object' && Object.keys(data).length === 0);
}

/** How many attempts it has in all, without the bound of ours. */
function attemptsOf({ attempts, attemptsLeft }: ReadJob, { job }: ImportRule): number {
  return attemptsLeft === undefined ? Math.max(job.maxAttempts, attempts + 1) : attempts + attemptsLeft;
}

function carriedOver(read: ReadJob, rule: ImportRule): GivenOptions {
  const { runAt, stepsBehind, key, keyHolds } = read;
  return {
    runAt,
    priority: Math.min(Math.max(rule.job.priority + stepsBehind, 0), MAX_PRIORITY),
    maxAttempts: Math.min(attemptsOf(read, rule), MAX_ATTEMPTS),
    ...(key !== undefined && { uniqueKey: key, unique: keyHolds }),
  };
}

const OTHER_RULES = ['debounce', 'throttle', 'replace', 'delayMs', 'awaited'];

/** For callers without TypeScript: an import cannot wait for a window, and no caller waits for its jobs. */
function refuseRules(options: GivenOptions): void {
  for (const name of OTHER_RULES) {
    if (Reflect.get(options, name) !== undefined) {
      throw new TypeError(
        `importJobs: options returned the unknown option '${name}'; valid options: runAt and uniqueKey`,
      );
    }
  }
  const { unique } = options;
  if (typeof unique === 'object') throw new TypeError("importJobs: unique must be 'live' or 'waiting'");
}

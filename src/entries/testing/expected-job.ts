import type { JobDefinition, JobRecord, OutputInput, PayloadInput } from '../../index.ts';
import { checkBoolean, checkInteger, checkOptions, namesOf, shown } from '../../internal.ts';
import { checkDate, checkDurationMs } from '../../testing-face.ts';
import { type Difference, differences, type Equals } from './differences.ts';
import { spanMs, type TimeSpan } from './time-span.ts';

/**
 * What the matchers expect of a job. Values are compared as `toEqual` does, so a payload is expected whole
 * unless a matcher of the runner, such as `expect.objectContaining`, stands in its place.
 */
export interface ExpectedJob<TJob extends JobDefinition = JobDefinition> {
  payload?: PayloadInput<TJob> | undefined;
  queue?: string | undefined;
  priority?: number | undefined;
  maxAttempts?: number | undefined;
  uniqueKey?: string | null | undefined;
  group?: string | null | undefined;
  metadata?: Readonly<Record<string, unknown>> | undefined;
  /** The values of the app's own columns. */
  own?: Readonly<Record<string, unknown>> | undefined;
  /** How many attempts have begun. */
  attempt?: number | undefined;
  /** When it is due. */
  runAt?: Date | undefined;
  /** How long after its enqueue it is due, give or take `deltaMs`. @default deltaMs: 10_000 */
  runIn?: (TimeSpan & { deltaMs?: number | undefined }) | undefined;
  /** How many jobs there are that fit. @default at least one */
  times?: number | undefined;
  /** How long to look for them again and again, for an enqueue that is not awaited. @default 0 */
  withinMs?: number | undefined;
  /**
   * Whether to take no notice of jobs that may have completed without a trace. Otherwise `not` and `times`
   * fail where the definition's `keepResult` is `false`, or leaves out the payload that is compared, and such
   * a job may have run: it cannot be known how many there were.
   * @default false
   */
  ignoreUnkept?: boolean | undefined;
}

/** What `toHaveCompleted` expects. */
export interface ExpectedCompletion<TJob extends JobDefinition = JobDefinition> extends ExpectedJob<TJob> {
  /** What its handler has returned, as stored. */
  output?: OutputInput<TJob> | undefined;
}

/** What `toHaveDiscarded` expects. */
export interface ExpectedDiscard<TJob extends JobDefinition = JobDefinition> extends ExpectedJob<TJob> {
  /** Of its last error: a part of the message, or a pattern of `name: message`. */
  error?: string | RegExp | undefined;
}

/** As the checks read it, whichever of the matchers it is for. */
export type GivenExpectation = ExpectedCompletion &
  ExpectedDiscard & {
    /** Used by `toHaveRecordedSteps`, which knows what they are. */
    steps?: Readonly<Record<string, unknown>> | readonly string[] | undefined;
    waitsFor?: readonly string[] | undefined;
  };

const EXPECTED = namesOf<GivenExpectation>({
  payload: true,
  queue: true,
  priority: true,
  maxAttempts: true,
  uniqueKey: true,
  group: true,
  metadata: true,
  own: true,
  attempt: true,
  runAt: true,
  runIn: true,
  times: true,
  withinMs: true,
  ignoreUnkept: true,
  output: true,
  error: true,
  steps: true,
  waitsFor: true,
});
const DEFAULT_DELTA_MS = 10_000;

/** For callers without TypeScript. @throws TypeError | RangeError naming what is wrong */
export function checkExpected(
  matcher: string,
  expected: GivenExpectation,
): { readonly times: number | undefined; readonly withinMs: number; readonly ignoreUnkept: boolean } {
  checkOptions(`${matcher}: what is expected`, expected, EXPECTED);
  const { times, withinMs = 0, ignoreUnkept = false, runIn, error } = expected;
  checkBoolean(`${matcher}: ignoreUnkept`, ignoreUnkept);
  if (expected.output !== undefined && matcher !== 'toHaveCompleted') {
    throw new TypeError(`${matcher}: only a completed job has an output: use toHaveCompleted`);
  }
  if (error !== undefined && matcher !== 'toHaveDiscarded') {
    throw new TypeError(`${matcher}: error belongs to toHaveDiscarded`);
  }
  if (error !== undefined && typeof error !== 'string' && !(error instanceof RegExp)) {
    throw new TypeError(`${matcher}: error must be a string or a RegExp, got ${shown(error)}`);
  }
  if (times !== undefined) checkInteger(`${matcher}: times`, times, 0, Number.MAX_SAFE_INTEGER);
  if (expected.runAt instanceof Date) checkDate(`${matcher}: runAt`, expected.runAt);
  if (runIn !== undefined) delayOf(matcher, runIn);
  checkDurationMs(`${matcher}: withinMs`, withinMs, 0, 600_000);
  return { times, withinMs, ignoreUnkept };
}

function delayOf(
  matcher: string,
  { deltaMs = DEFAULT_DELTA_MS, ...span }: NonNullable<ExpectedJob['runIn']>,
) {
  return {
    ms: spanMs(`${matcher}: runIn`, span),
    deltaMs: checkDurationMs(`${matcher}: runIn.deltaMs`, deltaMs),
  };
}

/** In what a job is not as expected. */
export function differencesOf(
  record: JobRecord,
  expected: GivenExpectation,
  equals: Equals,
): readonly Difference[] {
  const { times: _, withinMs: __, ignoreUnkept: ___, steps: ____, waitsFor: _____, ...compared } = expected;
  const { runIn, error, own, ...values } = compared;
  const plain = Object.entries({ ...values, ...own }).flatMap(([key, value]) =>
    value === undefined && key !== 'payload'
      ? []
      : differences(key, Reflect.get(record, key), key === 'payload' ? (value ?? null) : value, equals),
  );
  return [
    ...plain,
    ...(runIn === undefined ? [] : delayDifference(record, runIn)),
    ...(error === undefined ? [] : errorDifference(record, error)),
  ];
}

function delayDifference(record: JobRecord, runIn: NonNullable<ExpectedJob['runIn']>): Difference[] {
  const { ms, deltaMs } = delayOf('runIn', runIn);
  const actualMs = record.runAt === null ? Number.POSITIVE_INFINITY : +record.runAt - +record.createdAt;
  if (Math.abs(actualMs - ms) <= deltaMs) return [];
  return [{ path: 'runIn (ms)', actual: Math.round(actualMs), expected: ms }];
}

function errorDifference(record: JobRecord, expected: string | RegExp): Difference[] {
  const last = record.errors.at(-1);
  const actual = last === undefined ? undefined : `${last.name}: ${last.message}`;
  const fits =
    actual !== undefined &&
    // A pattern with the flag g remembers where it was.
    (typeof expected === 'string' ? actual.includes(expected) : actual.search(expected) >= 0);
  return fits ? [] : [{ path: 'error', actual, expected }];
}

import { checkDate } from '../../job/limits.ts';
import { shown } from '../../job/shown.ts';
import { toStoredJson, UnstorableValueError } from '../../job/stored-json.ts';
import type { JobState, LiveState } from '../../sql/job-record.ts';
import type { TimeRange } from '../../sql/time-range.ts';

const LIVE_STATES: Readonly<Record<LiveState, true>> = {
  scheduled: true,
  due: true,
  running: true,
  waiting: true,
};

const STATES: Readonly<Record<JobState | 'retrying', true>> = {
  ...LIVE_STATES,
  retrying: true,
  completed: true,
  discarded: true,
  cancelled: true,
};

/** A misspelt state would find nothing, which looks like good news. @throws TypeError */
export function checkState(method: string, state: JobState | 'retrying'): JobState | 'retrying' {
  if (typeof state === 'string' && Object.hasOwn(STATES, state)) return state;
  throw new TypeError(
    `${method}: state must be one of ${Object.keys(STATES).join(', ')}; got ${shown(state)}`,
  );
}

/** The same for a state of live jobs. @throws TypeError */
export function checkLiveState(method: string, state: LiveState): LiveState {
  if (isLiveState(state)) return state;
  throw new TypeError(
    `${method}: state must be one of ${Object.keys(LIVE_STATES).join(', ')}; got ${shown(state)}`,
  );
}

export function isLiveState(state: unknown): state is LiveState {
  return typeof state === 'string' && Object.hasOwn(LIVE_STATES, state);
}

/** @throws RangeError */
export function checkCreated(
  method: string,
  { createdAfter, createdBefore }: { createdAfter?: Date | undefined; createdBefore?: Date | undefined },
): TimeRange | undefined {
  return checkRange(method, 'created', createdAfter, createdBefore);
}

/** @throws RangeError */
export function checkFinished(
  method: string,
  { finishedAfter, finishedBefore }: { finishedAfter?: Date | undefined; finishedBefore?: Date | undefined },
): TimeRange | undefined {
  return checkRange(method, 'finished', finishedAfter, finishedBefore);
}

function checkRange(
  method: string,
  what: 'created' | 'finished',
  after: Date | undefined,
  before: Date | undefined,
): TimeRange | undefined {
  if (after === undefined && before === undefined) return undefined;
  if (after !== undefined) checkDate(`${method}: ${what}After`, after);
  if (before !== undefined) checkDate(`${method}: ${what}Before`, before);
  return { after, before };
}

/** What a payload must contain, as JSON text. @throws TypeError when it is not JSON */
export function payloadText(method: string, payload: unknown): string {
  try {
    return toStoredJson(payload);
  } catch (error) {
    if (!(error instanceof UnstorableValueError)) throw error;
    const { message, path } = error.issue;
    throw new TypeError(`${method}: payload${path === '' ? '' : ` at ${path}`}: ${message}`);
  }
}

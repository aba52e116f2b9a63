import type { JobDefinition, PayloadInput } from '../../job/definition.ts';
import type { GivenOptions } from '../../job/enqueue-options.ts';
import type { Executor } from '../../sql/executor.ts';
import { type EnqueueSettings, enqueueOne } from '../enqueue/enqueue-around.ts';
import { JobFailedError } from './wait-errors.ts';
import { endOf } from './wait-for.ts';
import { checkNoTransaction, checkWaitOptions, type WaitOptions } from './wait-options.ts';

/**
 * Enqueues a job, waits for its end, and returns its output.
 *
 * @throws TypeError | RangeError | InvalidPayloadError before anything is sent
 * @throws JobFailedError, and what `waitFor` throws
 */
export async function run<TJob extends JobDefinition>(
  db: Executor,
  settings: EnqueueSettings,
  job: TJob,
  payload: PayloadInput<TJob>,
  { timeoutMs, signal, ...options }: GivenOptions & WaitOptions = {},
): Promise<unknown> {
  const { awaited } = options;
  const wait = checkWaitOptions('run', { timeoutMs, signal, awaited });
  checkNoTransaction('run', db);
  if (!job.keepResult) {
    throw new TypeError(`run: '${job.kind}' has keepResult: false, so its output would be lost`);
  }
  const taken = settings.own.find(({ key }) => key === 'timeoutMs' || key === 'signal');
  if (taken !== undefined) {
    throw new TypeError(`run: ${taken.key} is also the name of an own column; use enqueue and then waitFor`);
  }
  if (unanswered(options)) {
    throw new TypeError(
      'run does not take throttle without trailing, or unique: { forMs }: with them there may be no job ' +
        'to wait for',
    );
  }
  signal?.throwIfAborted();
  const { id } = await enqueueOne(db, settings, job, payload, options);
  // Refused above is all that can leave it out.
  const record = await endOf(db, settings.tables, job.kind, Number(id), wait);
  if (record.state === 'completed') return record.output;
  throw new JobFailedError(record);
}

/** Whether the result of such an enqueue may have no id. */
function unanswered({ throttle, unique }: GivenOptions): boolean {
  return (throttle !== undefined && throttle.trailing !== true) || typeof unique === 'object';
}

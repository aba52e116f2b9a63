import { isCancel, isFail, isSnooze } from '../../core/job/outcome.ts';
import { QueueError } from '../../errors.ts';

/**
 * What a batch handler returned or passed to `complete`: one entry for each of `count` jobs, in their order.
 * Without entries each job has the output `undefined`.
 *
 * @param caller how the message begins
 * @throws QueueError when it is not an array of that length: entries could not be matched to jobs
 */
export function batchResults(caller: string, returned: unknown, count: number): readonly unknown[] {
  if (returned === undefined) return Array.from({ length: count }, () => undefined);
  const wanted = `one entry for each of its ${count} jobs, in their order, or nothing`;
  if (!Array.isArray(returned)) {
    // Not the value itself: it may be an output, and the error is stored.
    const got = returned === null ? 'null' : `a value of type ${typeof returned}`;
    throw new QueueError(`${caller} ${got}; it takes ${wanted}`);
  }
  if (returned.length !== count) {
    throw new QueueError(`${caller} ${returned.length} entries; it takes ${wanted}`);
  }
  return returned;
}

/** Whether an entry is the output of a job that has been done. */
export function isOutput(entry: unknown): boolean {
  return !isFail(entry) && !isSnooze(entry) && !isCancel(entry);
}

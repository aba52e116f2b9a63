import { checkInteger } from '../../job/limits.ts';
import { shown } from '../../job/shown.ts';

/** How a call that changes many jobs goes about it. */
export interface Batching<TProgress> {
  /** The jobs of one statement, 1 to 10,000. */
  batchSize?: number | undefined;
  /** Called after each batch with the sums so far. What it throws ends the call after that batch. */
  onProgress?: ((sums: TProgress) => void) | undefined;
  /** Ends the call before its next batch; it then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
}

export const DEFAULT_BATCH_SIZE = 1_000;
const MAX_BATCH_SIZE = 10_000;

/** @throws RangeError | TypeError */
export function checkBatching<TProgress>(
  method: string,
  { batchSize, onProgress, signal }: Batching<TProgress>,
): void {
  if (batchSize !== undefined) checkInteger(`${method}: batchSize`, batchSize, 1, MAX_BATCH_SIZE);
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw new TypeError(`${method}: onProgress must be a function, got ${shown(onProgress)}`);
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(`${method}: signal must be an AbortSignal, got ${shown(signal)}`);
  }
}

import { setTimeout as delay } from 'node:timers/promises';

const TICK_MS = 20;

/**
 * How many milliseconds pass until the promise is settled, without those in which a busy machine did not let this
 * process run. A bound on it holds what the code itself waits for.
 */
export async function runningMsUntil(promise: Promise<unknown>): Promise<number> {
  let isSettled = false;
  const settled = promise.finally(() => {
    isSettled = true;
  });
  let runningMs = 0;
  for (let lastMs = performance.now(); !isSettled; ) {
    await Promise.race([settled, delay(TICK_MS)]);
    const nowMs = performance.now();
    runningMs += Math.min(nowMs - lastMs, TICK_MS);
    lastMs = nowMs;
  }
  return runningMs;
}

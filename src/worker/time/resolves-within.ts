import { sleep } from './sleep.ts';

/** Whether the promise resolves within so many milliseconds. */
export async function resolvesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const over = new AbortController();
  const resolved = promise.then(() => true);
  const late = sleep(ms, over.signal).then(() => false);
  const result = await Promise.race([resolved, late]);
  over.abort();
  return result;
}

const TURN_MS = 250;

/**
 * Whether the promise settles, either way, within about so many milliseconds in which the event loop turns. While a
 * handler blocks the loop no answer can be read: one timer alone would fire before an answer that has long been there.
 */
export async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const settled = promise.then(
    () => undefined,
    () => undefined,
  );
  for (let leftMs = ms; leftMs > 0; leftMs -= TURN_MS) {
    if (await resolvesWithin(settled, Math.min(leftMs, TURN_MS))) return true;
  }
  return false;
}

import { sleep } from './sleep.ts';

export async function resolvesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  return (
    (await resultWithin(
      promise.then(() => true),
      ms,
    )) === true
  );
}

/** What the promise resolves to, or `undefined` when that takes longer than `ms` milliseconds. */
export async function resultWithin<T>(promise: Promise<T>, ms: number): Promise<T | undefined> {
  const over = new AbortController();
  const late = sleep(ms, over.signal).then(() => undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    over.abort();
  }
}

const TURN_MS = 250;

/**
 * Whether the promise settles within about `ms` milliseconds in which the event loop turns. While a handler
 * blocks the loop no answer is read, and a single timer would fire before one that has already arrived.
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

import { within } from './within.ts';

const TURN_MS = 250;

/**
 * Whether the promise settles, either way, within about so many milliseconds in which the event loop turns. While a handler blocks
 * the loop no answer can be read, so that time does not count: one timer alone would fire before the answer is read that
 * has long been there.
 */
export async function settlesWithin(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const settled = promise.then(
    () => undefined,
    () => undefined,
  );
  for (let leftMs = ms; leftMs > 0; leftMs -= TURN_MS) {
    if (await within(settled, Math.min(leftMs, TURN_MS))) return true;
  }
  return false;
}

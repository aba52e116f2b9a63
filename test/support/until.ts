import { setTimeout as delay } from 'node:timers/promises';

/**
 * Waits until `condition` returns something true, and returns that. As long as a test may take: on a busy machine a
 * program alone may need half a minute to start.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  {
    timeoutMs = 100_000,
    intervalMs = 20,
  }: { readonly timeoutMs?: number; readonly intervalMs?: number } = {},
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const result = await condition();
    if (result) return result;
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${condition}`);
    await delay(intervalMs);
  }
}

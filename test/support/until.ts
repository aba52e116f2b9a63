import { setTimeout as delay } from 'node:timers/promises';

/** Waits until `condition` returns something true, and returns that. */
export async function until<T>(
  condition: () => T | Promise<T>,
  { timeoutMs = 20_000, intervalMs = 20 }: { readonly timeoutMs?: number; readonly intervalMs?: number } = {},
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const result = await condition();
    if (result) return result;
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${condition}`);
    await delay(intervalMs);
  }
}

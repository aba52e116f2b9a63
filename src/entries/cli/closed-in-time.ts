import { pauseFor } from './interruption.ts';

const CLOSE_MS = 3_000;
const NEVER: AbortSignal = new AbortController().signal;

/**
 * Closes a connection, and goes on after three seconds: what has been done is done, whatever becomes of the
 * connection, and a pool may wait for a statement.
 */
export async function closedInTime(close: () => Promise<unknown>): Promise<void> {
  await Promise.race([close().catch(() => undefined), pauseFor(CLOSE_MS, NEVER)]);
}

import { drizzle } from 'drizzle-orm/postgres-js';
import type { Database } from 'drizzle-queue';
import postgres from 'postgres';
import { expect, onTestFinished } from 'vitest';
import { runningMsUntil } from '../../support/running-time.ts';

/** A pool for a worker, and how often the worker has looked for cancels and pauses. */
export function countLooks(url: string): { readonly db: Database; readonly looks: () => number } {
  let looks = 0;
  const debug = (_: number, text: string) => {
    if (text.includes('queue_pauses')) looks++;
  };
  const client = postgres(url, { max: 6, debug, onnotice: () => {} });
  onTestFinished(() => client.end({ timeout: 1 }));
  return { db: drizzle({ client }), looks: () => looks };
}

/**
 * Holds that a worker hears of a request that has just been committed as soon as it can: from the notification, or
 * without one with its next look. That this comes within a second is a test of `Requests`.
 */
export async function expectHeardAtOnce(
  heard: Promise<unknown>,
  { listen, looks }: { readonly listen: boolean; readonly looks: () => number },
): Promise<void> {
  const before = looks();
  let after = Number.NaN;
  const noted = heard.then(() => {
    after = looks();
  });
  // Without the notification it would look after 3.75 seconds or more.
  if (listen) expect(await runningMsUntil(noted)).toBeLessThan(3_000);
  await noted;
  if (!listen) expect(after - before).toBeLessThanOrEqual(1);
}

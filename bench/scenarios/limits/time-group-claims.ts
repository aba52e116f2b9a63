import { setTimeout as sleep } from 'node:timers/promises';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, handle, limitsIn } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import postgres from 'postgres';
import { median } from '../../median.ts';

export interface GroupClaimsRequest {
  readonly url: string;
  /** Of how many claims at least. */
  readonly claims: number;
  readonly limitMs: number;
}

export interface TimedGroupClaims {
  readonly claims: number;
  readonly medianMs: number;
  readonly slowestMs: number;
}

const SLOTS = 200;
const HOLD_MS = 10;
/** Code and plans are new to the first ones. */
const WARM_UP = 5;
/** Smaller ones are of what was left over. */
const LARGE = SLOTS / 4;
/** What follows a death of a worker is over by then. */
const AFTER_DEATH_MS = 2_000;

/**
 * How long the claims of a worker take while jobs of very many groups wait, as its event says. Beside them it looks after the groups,
 * finds another worker dead, and looks for what that has held.
 */
export async function timeGroupClaims({
  url,
  claims,
  limitMs,
}: GroupClaimsRequest): Promise<TimedGroupClaims> {
  const client = postgres(url, { onnotice: () => {} });
  const queue = createQueue({ limits: limitsIn(control, { bench: { groups: {} } }) });
  const job = defineJob('bench', { queue: 'bench', keepResult: false });
  const worker = createWorker(drizzle({ client }), {
    log: false,
    queue,
    handlers: [handle(job, () => sleep(HOLD_MS))],
    queues: { bench: { concurrency: SLOTS } },
  });
  const took: number[] = [];
  let goneMs = Number.POSITIVE_INFINITY;
  worker.on('claimed', ({ count, durationMs }) => {
    if (count >= LARGE) took.push(durationMs);
  });
  worker.on('gone', () => {
    goneMs = performance.now();
  });
  const startMs = performance.now();
  await worker.start();
  // The lock of its session is free.
  await client`insert into queue_workers (name, queues, session) values ('dead', '["bench"]', 1)`;
  const isOver = () =>
    performance.now() > startMs + limitMs ||
    (took.length >= WARM_UP + claims && performance.now() > goneMs + AFTER_DEATH_MS);
  while (!isOver()) await sleep(20);
  await worker.stop();
  await client.end();
  const timed = took.slice(WARM_UP);
  if (timed.length < claims || goneMs === Number.POSITIVE_INFINITY)
    throw new Error(
      `${timed.length} of ${claims} claims were timed; the dead worker was found at ${goneMs} ms`,
    );
  return { claims: timed.length, medianMs: median(timed), slowestMs: Math.max(...timed) };
}

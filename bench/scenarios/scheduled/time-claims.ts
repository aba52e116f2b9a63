import { drizzle } from 'drizzle-orm/postgres-js';
import * as tables from 'drizzle-queue/schema';
import postgres from 'postgres';
import { senderOf } from '../../../src/core/drivers/sender.ts';
import { MAX_PRIORITY } from '../../../src/core/job/limits.ts';
import { type Band, claimJobs } from '../../../src/core/queries/claim/claim-jobs.ts';
import type { Runner } from '../../../src/core/sql/executor.ts';
import { nowMs } from '../../child/counter.ts';

export interface TimeClaimsRequest {
  readonly url: string;
  readonly claims: number;
  readonly limit: number;
}

export interface TimedClaims {
  /** The median of the claims that begin at the floor, as most do, in milliseconds. */
  readonly claimMs: number;
  /** The median of those that begin at the very start. */
  readonly sweepMs: number;
}

/** How long a claim takes, as the worker sees it; what it claims stays claimed. */
export async function timeClaims({ url, claims, limit }: TimeClaimsRequest): Promise<TimedClaims> {
  const client = postgres(url, { max: 1, onnotice: () => {} });
  // Prepared, as the worker has them.
  const sender = senderOf(drizzle({ client }), (error) => {
    throw error;
  });
  const db: Runner = { execute: (query) => sender.send(query, true).answer };
  const bands: Band[] = Array.from({ length: MAX_PRIORITY + 1 }, (_, priority) => ({
    priority,
    floorMs: Number.NEGATIVE_INFINITY,
  }));

  async function claim(sweep: boolean): Promise<number> {
    const startMs = nowMs();
    const jobs = await claimJobs(db, tables, {
      queue: 'bench',
      kinds: ['bench'],
      workerId: 1,
      bands: sweep ? bands.map(({ priority }) => ({ priority, floorMs: Number.NEGATIVE_INFINITY })) : bands,
      limit,
      fromGoneWorkers: sweep,
    });
    const durationMs = nowMs() - startMs;
    if (jobs.length < limit) throw new Error(`Claimed ${jobs.length} of ${limit}: there were too few jobs`);
    for (const { priority, runAt } of jobs.toReversed()) {
      bands[priority] = { priority, floorMs: Math.floor(runAt.getTime()) };
    }
    return durationMs;
  }

  // The first ones warm up: caches, code, and the worker's knowledge of where the queue begins.
  for (let warmUp = 0; warmUp < 5; warmUp++) await claim(warmUp === 0);
  const claimed: number[] = [];
  const swept: number[] = [];
  for (let index = 0; index < claims; index++) claimed.push(await claim(false));
  for (let index = 0; index < Math.ceil(claims / 4); index++) swept.push(await claim(true));
  await client.end();
  return { claimMs: middle(claimed), sweepMs: middle(swept) };
}

function middle(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

import type { Sql } from 'postgres';
import { nowMs } from '../../child/counter.ts';
import { Child } from '../../harness/child.ts';
import type { Sites } from '../../harness/site.ts';
import { median } from '../../median.ts';
import type { TimeClaimsRequest, TimedClaims } from '../scheduled/time-claims.ts';
import { EngineChild } from './engine-child.ts';
import type { Form } from './forms.ts';
import { type OpenDatabase, withDatabase } from './open-database.ts';

export interface WaitingLoad {
  /** How many workflows wait: half of them for a signal, half until tomorrow. */
  readonly waiting: number;
  /** How many of them get their signal while they are watched. */
  readonly signals: number;
  /** How many run at once until they wait. */
  readonly concurrency: number;
}

/** What many waiting workflows cost. */
export interface Waiting {
  readonly waiting: number;
  /** How many a second came to wait. */
  readonly perSecond: number;
  /** What each takes of the heap of the process, in bytes. */
  readonly heapBytesEach: number;
  /** From the answer to the commit of a signal to the first line after the wait, in milliseconds. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** A signal each, 20 a second. */
const EVERY_MS = 50;
/** As many signals again are sent before. */
const WARM_UP_SHARE = 0.1;
/** Of the workflows that wait; the heap after them is the one to compare with. */
const FIRST_SHARE = 0.1;

/** Has many workflows wait, and signals some of them from another process. */
export async function measureWaiting(
  { url, sql }: OpenDatabase,
  form: Form,
  { waiting, signals, concurrency }: WaitingLoad,
): Promise<Waiting> {
  const { engine, options } = form;
  const child = await EngineChild.open({ engine, options, url, concurrency, works: true });
  const first = Math.ceil(waiting * FIRST_SHARE);
  await comeToWait(child, form, sql, 0, first);
  const before = await child.memory();
  const startMs = nowMs();
  await comeToWait(child, form, sql, first, waiting - first);
  const perSecond = ((waiting - first) * 1_000) / (nowMs() - startMs);
  const after = await child.memory();

  const sender = await EngineChild.open({ engine, options, url, concurrency: 1, works: false });
  const warmUp = Math.ceil(signals * WARM_UP_SHARE);
  const signalled = warmUp + signals;
  // Spread over all that wait for one: every other number does.
  const every = Math.max(2, Math.floor(waiting / signalled / 2) * 2);
  const numbers = Array.from({ length: signalled }, (_, index) => index * every);
  const committedMs = await sender.do('signal', { numbers, everyMs: EVERY_MS });
  const resumedMs = await allResumed(child, numbers);
  await sender.end();
  await child.end();
  const latencies = committedMs
    .map((ms, index) => (resumedMs[index] ?? Number.NaN) - ms)
    .slice(warmUp)
    .sort((a, b) => a - b);
  return {
    waiting,
    perSecond,
    heapBytesEach: (after.heapBytes - before.heapBytes) / (waiting - first),
    p50Ms: median(latencies),
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN,
  };
}

async function comeToWait(
  child: EngineChild,
  form: Form,
  sql: Sql,
  from: number,
  count: number,
): Promise<void> {
  const before = await form.countWaiting(sql);
  await child.do('put', { shape: 'wait-or-sleep', steps: 0, from, count });
  const deadlineMs = nowMs() + 900_000;
  while ((await form.countWaiting(sql)) < before + count) {
    if (nowMs() > deadlineMs) throw new Error(`${form.name}: not all workflows have come to wait`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function allResumed(child: EngineChild, numbers: readonly number[]): Promise<readonly number[]> {
  const deadlineMs = nowMs() + 30_000;
  for (;;) {
    const resumed = await child.do('resumed', numbers);
    const known = resumed.filter((ms) => ms !== undefined);
    if (known.length === numbers.length) return known;
    if (nowMs() > deadlineMs) throw new Error(`${numbers.length - known.length} signals have woken nobody`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export const CLAIM_LIMITS = [1, 200];

/** How long claims of plain jobs take in a database, by how many a claim takes. */
export async function timeClaims(
  { url, sql }: OpenDatabase,
  claims: number,
): Promise<readonly (TimedClaims & { readonly limit: number })[]> {
  const timed: (TimedClaims & { readonly limit: number })[] = [];
  for (const limit of CLAIM_LIMITS) {
    await sql`delete from queue_jobs where run_at <= now() or worker_id is not null`;
    const count = limit * (claims * 2 + 10);
    await sql`
      insert into queue_jobs (queue, kind, payload, max_attempts)
      select 'bench', 'bench', jsonb_build_object('n', i), 20 from generate_series(1, ${count}::int4) as i`;
    await sql`vacuum (analyze)`;
    await sql`checkpoint`;
    const child = await Child.start();
    const request: TimeClaimsRequest = { url, claims, limit };
    // It is what the measurement answers.
    timed.push({ limit, ...((await child.call('measure', 'claims', request)) as TimedClaims) });
    await child.end();
  }
  return timed;
}

/** How long a workflow takes to get past the steps that it has recorded, in milliseconds. */
export interface Replay {
  /** From the first line of its function. */
  readonly inFunctionMs: number;
  /** From the answer to the commit that has it run again. */
  readonly inAllMs: number;
}

/** Has workflows replay recorded steps; medians. */
export async function measureReplay(sites: Sites, form: Form, steps: number, times: number): Promise<Replay> {
  return await withDatabase(sites, form, async ({ url, sql }) => {
    const { engine, options } = form;
    const child = await EngineChild.open({ engine, options, url, concurrency: 10, works: true });
    const replays: Replay[] = [];
    for (let n = 0; n < times; n++) {
      const before = await form.countWaiting(sql);
      await child.do('put', { shape: 'replay', steps, from: n, count: 1 });
      await until(async () => (await form.countWaiting(sql)) > before, `${form.name}: has not come to wait`);
      const committedMs = await child.do('replay', { n, steps });
      const runs = 2 * (n + 1);
      await until(async () => (await child.do('replays')).length === runs, `${form.name}: has not replayed`);
      const { startMs, endMs } = (await child.do('replays')).at(-1) ?? {
        startMs: Number.NaN,
        endMs: Number.NaN,
      };
      replays.push({ inFunctionMs: endMs - startMs, inAllMs: endMs - committedMs });
      // The copy that DBOS makes comes to wait, too.
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    await child.end();
    return {
      inFunctionMs: median(replays.map(({ inFunctionMs }) => inFunctionMs)),
      inAllMs: median(replays.map(({ inAllMs }) => inAllMs)),
    };
  });
}

async function until(isSo: () => Promise<boolean>, orElse: string): Promise<void> {
  for (const deadlineMs = nowMs() + 120_000; !(await isSo()); ) {
    if (nowMs() > deadlineMs) throw new Error(orElse);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

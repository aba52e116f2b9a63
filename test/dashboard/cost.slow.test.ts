import { readFileSync } from 'node:fs';
import { createQueue } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import { expect, test } from 'vitest';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { get } from './support/visits.ts';

const database = useTestDatabase();
const LIVE = 1_000_000;
const RESULTS = 1_000_000;
/** As the script of an open page asks. */
const EVERY_MS = 2_000;
/** Counts that come after each other sooner are among the first, which may take more. */
const RESTED_MS = 30_000;
const TICKS_PER_SECOND = 100;

test(`an open overview of ${LIVE} jobs takes half a percent of a core at most, and a hundred take no more`, async () => {
  await fill();
  const seen = await Promise.all([watched(1), watched(100)]);
  for (const { viewers, seconds, databaseMs, asked } of seen) {
    const share = databaseMs / seconds / 10;
    console.log(
      `${viewers} open overviews, ${LIVE} live jobs, ${RESULTS} results: ${Math.round((databaseMs * 60) / seconds)} ms ` +
        `of the database's processor a minute (${share.toFixed(2)} % of a core), ${asked} pages, counted anew after ` +
        `${Math.round(seconds)} s`,
    );
    expect(share).toBeLessThan(0.5);
  }
}, 1_800_000);

async function fill(): Promise<void> {
  await database.client`
    insert into queue_jobs (queue, kind, payload, run_at, max_attempts)
    select 'q' || n % 8, 'kind-' || n % 20, jsonb_build_object('orderId', n),
      now() + (n % 3 - 1) * interval '1 hour', 20
    from generate_series(1, ${LIVE}::int) as n`;
  await database.client`
    insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence, metadata,
      worker_id, created_at, run_at, claimed_at, finished_at)
    select 2000000 + n, 'q' || n % 8, 'kind-' || n % 20, jsonb_build_object('orderId', n),
      case when n % 100 = 0 then 'discarded' else 'completed' end, '[]', 1, 20, 5, 1, '{}', 1,
      t.at - interval '2 s', t.at - interval '90 ms', t.at - interval '80 ms', t.at
    from generate_series(1, ${RESULTS}::int) as n, lateral (select now() - n * interval '10 ms' as at) as t`;
  await database.client`analyze`;
}

/** What some viewers of an overview cost from one count to the next, once the first ones are made good. */
async function watched(viewers: number) {
  const [connection] = await database.connect();
  if (connection === undefined) throw new Error('one was opened');
  const queue = createQueue();
  const dashboard = createDashboard({ db: connection.db, queue, authorize: () => 'read' });
  const pid = await pidOf(connection);
  const closing = new AbortController();
  let asked = 0;
  const watching = Array.from({ length: viewers }, async (_, viewer) => {
    await sleep((viewer / viewers) * EVERY_MS);
    let etag: string | undefined;
    while (!closing.signal.aborted) {
      const answer = await get(dashboard, '/', etag === undefined ? {} : { 'if-none-match': etag });
      expect([200, 304]).toContain(answer.status);
      await answer.arrayBuffer();
      etag = answer.headers.get('etag') ?? undefined;
      asked++;
      await sleep(EVERY_MS);
    }
  });
  const countedAt = async () => (await queue.stats(connection.db)).countedAt.getTime();
  const recounted = async () => {
    const before = await countedAt();
    await until(async () => (await countedAt()) !== before, { timeoutMs: 700_000, intervalMs: 250 });
    return await countedAt();
  };
  let last = await recounted();
  for (let restMs = 0; restMs < RESTED_MS; ) {
    const next = await recounted();
    restMs = next - last;
    last = next;
  }
  const [beginMs, beforeMs, before] = [performance.now(), processorMs(pid), asked];
  await recounted();
  const seconds = (performance.now() - beginMs) / 1_000;
  const databaseMs = processorMs(pid) - beforeMs;
  closing.abort();
  await Promise.all(watching);
  return { viewers, seconds, databaseMs, asked: asked - before };
}

async function pidOf({ client }: Connection): Promise<number> {
  const [row] = await client<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return Number(row?.pid);
}

/** What a process has used of a processor, by its own count and that of the system for it. */
function processorMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return ((user + system) / TICKS_PER_SECOND) * 1_000;
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

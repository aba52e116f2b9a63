import { readFileSync } from 'node:fs';
import { createQueue } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import { expect, test } from 'vitest';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { get } from './support/visits.ts';

const database = useTestDatabase();
const LIVE = 1_000_000;
const RESULTS = 1_000_000;
/** As the script of an open page asks. */
const EVERY_MS = 2_000;
const TICKS_PER_SECOND = 100;

test(`an open overview of ${LIVE} jobs takes half a percent of a core at most, and a hundred take no more`, async () => {
  await fill();
  const one = await watched(1, 60_000);
  const hundred = await watched(100, 60_000);
  for (const { viewers, seconds, databaseMs, asked, oldestMs } of [one, hundred]) {
    const share = (databaseMs / seconds / 10).toFixed(2);
    console.log(
      `${viewers} open overviews, ${LIVE} live jobs, ${RESULTS} results: ${Math.round((databaseMs * 60) / seconds)} ms ` +
        `of the database's processor a minute (${share} % of a core), ${asked} pages, figures up to ${oldestMs} ms old`,
    );
    // Half a percent, and as much again for a machine that is busy and for pauses, which rest apart.
    expect(databaseMs / seconds / 10).toBeLessThan(1);
  }
}, 1_200_000);

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

/** What some viewers of an overview cost in some time, of which the first counts are a part. */
async function watched(viewers: number, forMs: number) {
  const [connection] = await database.connect();
  if (connection === undefined) throw new Error('one was opened');
  const queue = createQueue();
  const dashboard = createDashboard({ db: connection.db, queue, authorize: () => 'read' });
  const pid = await pidOf(connection);
  const [beginMs, beforeMs] = [performance.now(), processorMs(pid)];
  let asked = 0;
  await Promise.all(
    Array.from({ length: viewers }, async (_, viewer) => {
      await sleep((viewer / viewers) * EVERY_MS);
      let etag: string | undefined;
      while (performance.now() - beginMs < forMs) {
        const answer = await get(dashboard, '/', etag === undefined ? {} : { 'if-none-match': etag });
        expect([200, 304]).toContain(answer.status);
        await answer.arrayBuffer();
        etag = answer.headers.get('etag') ?? undefined;
        asked++;
        await sleep(EVERY_MS);
      }
    }),
  );
  const seconds = (performance.now() - beginMs) / 1_000;
  const databaseMs = processorMs(pid) - beforeMs;
  const { countedAt } = await queue.stats(connection.db);
  return { viewers, seconds, databaseMs, asked, oldestMs: Date.now() - countedAt.getTime() };
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

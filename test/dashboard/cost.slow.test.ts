import { readFileSync } from 'node:fs';
import { createQueue } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import { expect, test, vi } from 'vitest';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { get } from './support/visits.ts';

const database = useTestDatabase();
const LIVE = 1_000_000;
const RESULTS = 1_000_000;
/** As the script of an open page asks. */
const EVERY_MS = 2_000;
/** In this time the first counts are made good, which may take more. */
const FIRST_MS = 300_000;
const WATCHED_MS = 900_000;
const TICKS_PER_SECOND = 100;

test(`an open overview of ${LIVE} jobs takes half a percent of a core at most, and a hundred take no more`, async () => {
  await fill();
  for (const { viewers, seconds, databaseMs } of [await watched(1), await watched(100)]) {
    const share = databaseMs / seconds / 10;
    console.log(
      `${viewers} open overviews, ${LIVE} live jobs, ${RESULTS} results: ${Math.round((databaseMs * 60) / seconds)} ms ` +
        `of the database's processor a minute (${share.toFixed(2)} % of a core), over ${Math.round(seconds)} s`,
    );
    expect(share).toBeLessThan(0.5);
  }
}, 600_000);

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

/**
 * What some viewers of an overview cost, once the first counts are made good. The clock by which the database
 * rests is real while it works, and put forward between two rounds of questions.
 */
async function watched(viewers: number) {
  const [connection] = await database.connect();
  if (connection === undefined) throw new Error('one was opened');
  const dashboard = createDashboard({ db: connection.db, queue: createQueue(), authorize: () => 'read' });
  const pid = await pidOf(connection);
  const real = performance.now.bind(performance);
  let skippedMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => real() + skippedMs);
  const etags = new Array<string | undefined>(viewers).fill(undefined);
  const during = async (forMs: number) => {
    const [beginMs, beforeMs] = [performance.now(), processorMs(pid)];
    while (performance.now() - beginMs < forMs) {
      await Promise.all(
        etags.map(async (etag, viewer) => {
          const answer = await get(dashboard, '/', etag === undefined ? {} : { 'if-none-match': etag });
          expect([200, 304]).toContain(answer.status);
          await answer.arrayBuffer();
          etags[viewer] = answer.headers.get('etag') ?? undefined;
        }),
      );
      skippedMs += EVERY_MS;
    }
    return { seconds: (performance.now() - beginMs) / 1_000, databaseMs: processorMs(pid) - beforeMs };
  };
  try {
    await during(FIRST_MS);
    return { viewers, ...(await during(WATCHED_MS)) };
  } finally {
    clock.mockRestore();
  }
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

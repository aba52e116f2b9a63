import { createQueue } from 'drizzle-queue';
import { type Authorization, createDashboard, type Dashboard } from 'drizzle-queue/dashboard';
import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { countFinished } from '../../src/core/queries/browse/count-finished.ts';
import { clearTables, tables } from '../queries/support/jobs.ts';
import { addMetricsTable } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { another, page, textOf } from './support/visits.ts';

const database = useTestDatabase();
/** More than are read, evenly over fifty minutes. */
const RESULTS = 60_000;
const BETWEEN_MS = 50;

beforeAll(async () => {
  await clearTables(database.client);
  await database.client`
    insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence,
      metadata, created_at, run_at, claimed_at, finished_at)
    select n, 'q' || n % 2, 'k', '{}', case when n % 10 = 0 then 'discarded' else 'completed' end, '[]', 1, 20, 5, 1,
      '{}', t.at, t.at, t.at, t.at
    from generate_series(1, ${RESULTS}::int) as n,
      lateral (select now() - n * ${BETWEEN_MS} * interval '1 ms' as at) as t`;
}, 120_000);

async function overview(authorization: Authorization = 'read'): Promise<string> {
  const authorize = () => authorization;
  const dashboard = createDashboard({ db: another(database.db), queue: createQueue(), authorize });
  return textOf(await page(dashboard, '/'));
}

test('numbers of the last hour say how far back they go where not all of it was read', async () => {
  const text = await overview();
  const [, completed, minutes] =
    /Completed ([\d,]+) in the last (\d+) min[ \ds]*: older results were not read/.exec(text) ?? [];
  expect(completed).toBe('45,000');
  expect([41, 42, 43, 44]).toContain(Number(minutes));
  expect(text).toMatch(/Discarded 5,000 10 % of the last \d+ min/);
  expect(text).toMatch(/Of the newest 50,000 results, which go back to \d+ min ago/);
  expect(text).not.toContain('Completed 45,000 in the last hour');
});

test('nor are the others said to be quiet to a user whose jobs are not among those that were read', async () => {
  const text = await overview({ queues: ['q2'] });
  expect(text).not.toContain('All quiet');
  expect(text).toMatch(/Completed 0 in the last \d+ min[ \ds]*: older results were not read/);
});

test('and are the whole truth where all was read', async () => {
  await database.client`delete from queue_results where job_id > 20000`;
  const [truth] = await database.client`
    select count(*) filter (where state = 'completed')::int as completed from queue_results
    where finished_at > now() - interval '1 hour'`;
  expect(truth?.completed).toBe(18_000);
  expect(await overview()).toContain(
    'Completed 18,000 in the last hour Discarded 2,000 10 % of the last hour',
  );
});

test('results outside of a scope are not counted, and say how far was read', async () => {
  const of = { scope: { queues: ['q1'], own: [] }, minutes: 60 };
  const all = await countFinished(database.db, tables, { ...of, bound: 30_000 });
  expect(all.since).toBeUndefined();
  expect(all.minutes.reduce((sum, { completed }) => sum + completed, 0)).toBe(10_000);
  const some = await countFinished(database.db, tables, { ...of, bound: 1_000 });
  const [oldest] = await database.client`
    select extract(epoch from finished_at)::float8 * 1000 as ms from queue_results order by finished_at desc offset 999 limit 1`;
  expect(Math.abs(Number(some.since) - Number(oldest?.ms))).toBeLessThanOrEqual(1);
  expect(some.minutes.reduce((sum, { completed }) => sum + completed, 0)).toBe(500);
});

describe('charts show each minute at its own time, however old the answer is', () => {
  const MINUTE_S = 60;
  afterEach(() => vi.useRealTimers());

  /** How many jobs were completed, by the second in which their minute begins; only where there were any. */
  async function completedIn(dashboard: Dashboard) {
    const [, data = ''] = /data-chart="([^"]+)"/.exec(await page(dashboard, '/')) ?? [];
    const { times, series } = JSON.parse(data.replaceAll('&quot;', '"'));
    const found = times.map((time: number, index: number) => [time, series[0].values[index]]);
    return found.filter(([, completed]: number[]) => completed);
  }

  /** What two pages show, of which the second is loaded four minutes later. */
  async function twice(dashboard: Dashboard) {
    const first = await completedIn(dashboard);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 4 * MINUTE_S * 1_000 });
    return [first, await completedIn(dashboard)];
  }

  /** The beginnings of the minute that was 50 minutes ago, and of this one. */
  async function ends(): Promise<[number, number]> {
    const [row] = await database.client`select floor(extract(epoch from now()) / 60)::int * 60 as now`;
    return [Number(row?.now) - 50 * MINUTE_S, Number(row?.now)];
  }

  test('of the results', async () => {
    await clearTables(database.client);
    const [early, late] = await ends();
    await database.client`
      insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence,
        metadata, created_at, run_at, claimed_at, finished_at)
      select n, 'q', 'k', '{}', 'completed', '[]', 1, 20, 5, 1, '{}', t.at, t.at, t.at, t.at
      from generate_series(1, 5) as n, lateral (select to_timestamp(case when n > 3 then ${early}::float8 else ${late}::float8 end) as at) as t`;
    const dashboard = createDashboard({
      db: another(database.db),
      queue: createQueue(),
      authorize: () => 'read',
    });
    const expected = [
      [early, 2],
      [late, 3],
    ];
    expect(await twice(dashboard)).toEqual([expected, expected]);
  });

  test('of what workers have reported', async () => {
    await addMetricsTable(database);
    const [early, late] = await ends();
    await database.client`
      insert into queue_metrics (at, minutes, worker_id, report, queue, kind, completed, wait, run, wait_ms, run_ms)
      values (to_timestamp(${early}::float8), 1, 1, 1, 'q', 'k', 10, '{}', '{}', 0, 0),
        (to_timestamp(${late}::float8), 1, 1, 2, 'q', 'k', 20, '{}', '{}', 0, 0)`;
    const dashboard = createDashboard({
      db: another(database.db),
      queue: createQueue({ metrics: queueMetrics }),
      authorize: () => 'read',
    });
    const expected = [
      [early, 10],
      [late, 20],
    ];
    expect(await twice(dashboard)).toEqual([expected, expected]);
  });
});

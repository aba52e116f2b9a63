import { createQueue } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import { beforeAll, describe, expect, test } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { another, page, textOf } from './support/visits.ts';

const database = useTestDatabase();
const LIVE = 1_000_000;
const RESULTS = 1_000_000;
const RUNNING = 160;
const RETRYING = 2_000;

function dashboard() {
  return createDashboard({ db: another(database.db), queue: createQueue(), authorize: () => 'read' });
}

async function countOf(query: string): Promise<number> {
  const [row] = await database.client.unsafe(`select count(*)::int as jobs from ${query}`);
  return Number(row?.jobs);
}

const numberIn = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1]?.replaceAll(',', ''));

describe(`of ${LIVE} live jobs and ${RESULTS} results`, () => {
  beforeAll(async () => {
    await database.client`
      insert into queue_workers (name, queues)
      select 'w', jsonb_agg('q' || n) from generate_series(0, 7) as n`;
    await database.client`
      insert into queue_jobs (queue, kind, payload, run_at, max_attempts, unique_key, group_key, attempt, errors, worker_id,
        claimed_at)
      select 'q' || n % 8, 'kind-' || n % 20, jsonb_build_object('orderId', n),
        case when n <= ${RETRYING}::int then now() + n * interval '1 s' when n % 5 = 0 then now() + n * interval '1 s'
          else now() - interval '3 hours' + n * interval '5 ms' end,
        20, case when n % 10 = 0 then 'order-' || n end, case when n % 500 = 1 then 'tenant-' || n % 3000 end,
        (n <= ${RETRYING + RUNNING}::int)::int,
        case when n <= ${RETRYING}::int then '[{"attempt": 1, "name": "Error", "message": "no route"}]'::jsonb else '[]' end,
        case when n > ${RETRYING}::int and n <= ${RETRYING + RUNNING}::int and n % 5 <> 0 then 1 end, now()
      from generate_series(1, ${LIVE}::int) as n`;
    await database.client`
      insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence,
        metadata, worker_id, created_at, run_at, claimed_at, finished_at)
      select 2000000 + n, 'q' || n % 8, 'kind-' || n % 20, '{}',
        case when n % 200 = 0 then 'discarded' else 'completed' end,
        case when n % 200 = 0 then jsonb_build_array(jsonb_build_object('attempt', 1, 'name', 'Error', 'message',
          'cause ' || chr(65 + n / 200 % 3) || ' of order ' || n)) else '[]' end,
        1, 20, 5, 1, '{}', 1, t.at, t.at, t.at, t.at
      from generate_series(1, ${RESULTS}::int) as n, lateral (select now() - n * interval '20 ms' as at) as t`;
    await database.client`vacuum analyze queue_jobs, queue_results`;
  }, 600_000);

  test('the numbers of the overview and of the errors are true, or say what they cover', async () => {
    const board = dashboard();
    const overview = textOf(await page(board, '/'));
    expect(overview).toMatch(/oldest for [23] h/);
    expect(numberIn(overview, /Retrying ([\d,]+) failed/)).toBe(RETRYING);
    const [, completed, minutes, seconds = '0'] =
      /Completed ([\d,]+) in the last (\d+) min(?: (\d+) s)?: older results were not read/.exec(overview) ??
      [];
    const read = numberIn(`${completed}`, /(.*)/);
    expect(read).toBe(49_750);
    // By the newest 50,000 results, 20 ms apart, and the time that the test takes meanwhile.
    expect(Number(minutes) * 60 + Number(seconds)).toBeGreaterThanOrEqual(1_000);
    const within = `queue_results where state = 'discarded' and finished_at > now() - interval`;
    const errors = textOf(await page(board, '/errors'));
    expect(numberIn(errors, /([\d,]+) discarded jobs with 3 causes in the last 24 hours/)).toBe(
      await countOf(`${within} '24 hours'`),
    );
    expect(errors).toContain('2,000 jobs have failed and wait for another attempt');
  });

  test.each([
    ['a job by id', '#199', 1],
    ['a job by its key', 'key:order-4440', 1],
    ['a group', 'group:tenant-1', 50],
    ['running jobs', 'state:running', 50],
    ['due jobs', 'state:due', 50],
    ['scheduled jobs', 'state:scheduled', 50],
    ['jobs that are retried', 'state:retrying', 50],
  ])('%s: found at once', async (_, filter, jobs) => {
    const board = dashboard();
    const html = await page(board, `/jobs?${new URLSearchParams({ q: filter })}`);
    expect([...html.matchAll(/id="job-(\d+)"/g)]).toHaveLength(jobs);
    expect(html).not.toContain('The database took more than');
  });

  test('the list of running jobs has all of them', async () => {
    const board = dashboard();
    let path: string | undefined = '/jobs?q=state%3Arunning';
    const ids = new Set<string>();
    while (path !== undefined) {
      const html: string = await page(board, path);
      for (const [, id = ''] of html.matchAll(/id="job-(\d+)"/g)) ids.add(id);
      path = /rel="next" href="([^"]+)"/.exec(html)?.[1]?.replaceAll('&amp;', '&');
    }
    expect(ids.size).toBe(await countOf('queue_jobs where worker_id is not null'));
  });
});

import { createQueue } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import { beforeEach, describe, expect, test } from 'vitest';
import { addJobs, clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { another, formsOf, page, post, textOf } from './support/visits.ts';

const database = useTestDatabase();

function dashboard(queues?: readonly string[]) {
  return createDashboard({
    db: another(database.db),
    queue: createQueue(),
    authorize: () => ({ can: 'write', ...(queues && { queues }) }),
    onAction: () => {},
  });
}

async function addDiscarded(jobs: readonly { message: string; hoursAgo: number; count: number }[]) {
  for (const { message, hoursAgo, count } of jobs) {
    await database.client`
      insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence,
        metadata, created_at, run_at, claimed_at, finished_at)
      select nextval('queue_jobs_id_seq'), 'mail', 'send', '{}', 'discarded',
        jsonb_build_array(jsonb_build_object('attempt', 1, 'name', 'Error', 'message', ${message}::text || ' ' || n)),
        1, 1, 5, 1, '{}', now(), now(), now(), now() - ${hoursAgo}::float8 * interval '1 hour'
      from generate_series(1, ${count}::int) as n`;
  }
}

beforeEach(async () => {
  await clearTables(database.client);
});

describe('jobs that all fail and are tried again', () => {
  const COUNT = 2_000;
  const error = {
    attempt: 2,
    name: 'TypeError',
    message: 'no route to host',
    at: '2026-01-02T03:04:05.678Z',
  };

  beforeEach(async () => {
    await addJobs(
      database.client,
      Array.from({ length: COUNT }, (_, n) => ({
        queue: 'mail',
        kind: 'send',
        attempt: 2,
        errors: [{ ...error, message: `${error.message} 10.0.0.${n}` }],
        // Some are due, most are not.
        dueInMs: n % 10 === 0 ? -60_000 : 60_000 + n,
      })),
    );
    await addJobs(database.client, [
      // Neither is one that a worker holds, one that was put back, or one that waits for repair.
      { queue: 'mail', kind: 'send', attempt: 3, errors: [error], workerId: 1 },
      { queue: 'mail', kind: 'send', attempt: 0, errors: [error] },
      { queue: 'mail', kind: 'send' },
      { queue: 'other', kind: 'send', attempt: 1, errors: [error], dueInMs: 60_000 },
    ]);
  });

  test('are counted on the overview, which names their kind among its findings', async () => {
    const text = textOf(await page(dashboard(), '/'));
    expect(text).toContain(`Retrying 2,001 failed, waiting to retry`);
    const all = await page(
      createDashboard({ db: another(database.db), queue: createQueue(), authorize: () => 'read' }),
      '/',
    );
    expect(textOf(all)).toContain(
      `${COUNT} jobs of 'send' in 'mail' have failed and wait for another attempt`,
    );
    expect(textOf(await page(dashboard(['other']), '/'))).toContain('Retrying 1 failed');
  });

  test('are listed with their last error, all of them', async () => {
    let path: string | undefined = '/jobs?q=state%3Aretrying';
    const ids = new Set<string>();
    const board = dashboard();
    while (path !== undefined) {
      const html: string = await page(board, path);
      if (ids.size === 0) expect(textOf(html)).toContain('TypeError: no route to host');
      for (const [, id = ''] of html.matchAll(/id="job-(\d+)"/g)) ids.add(id);
      path = /rel="next" href="([^"]+)"/.exec(html)?.[1]?.replaceAll('&amp;', '&');
    }
    const truth = await database.client`
      select id from queue_jobs where attempt > 0 and worker_id is null and errors <> '[]'`;
    expect(ids.size).toBe(truth.length);
    expect(truth.every(({ id }) => ids.has(String(id)))).toBe(true);
  });

  test('are all counted on the page of errors, also where there are more causes than it lists', async () => {
    await database.client`
      update queue_jobs set errors = jsonb_set(errors, '{-1,message}', to_jsonb('no route to ' || chr(40000 + id::int % 500)))
      where queue = 'mail' and attempt = 2`;
    const html = await page(dashboard(), '/errors');
    expect(html.match(/id="retrying-\d/g)).toHaveLength(100);
    expect(textOf(html)).toContain('2,001 jobs have failed and wait for another attempt.');
  });

  test('are a lower bound to a user whose jobs are not among those that were read', async () => {
    await database.client`
      insert into queue_jobs (queue, kind, payload, errors, attempt, max_attempts, priority, run_at)
      select 'mail', 'send', '{}', ${JSON.stringify([error])}::text::jsonb, 2, 5, 5, now() + interval '1 minute'
      from generate_series(1, 10000)`;
    const theirs = dashboard(['none']);
    expect(textOf(await page(theirs, '/'))).toContain('Retrying 0+ failed, waiting to retry');
    expect(textOf(await page(theirs, '/errors'))).toContain(
      '0 jobs have failed and wait for another attempt: of all that have failed 10,000 were read.',
    );
  });

  test('have their causes on the page of errors', async () => {
    const text = textOf(await page(dashboard(), '/errors'));
    expect(text).toContain('2,001 jobs have failed and wait for another attempt');
    expect(text).toMatch(/2,000 jobs send in mail TypeError no route to host 10\.0\.0\.\d+ next attempt/);
  });
});

describe('errors by cause', () => {
  test('go over hours, whatever was completed meanwhile', async () => {
    await database.client`
      insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence,
        metadata, created_at, run_at, claimed_at, finished_at)
      select nextval('queue_jobs_id_seq'), 'mail', 'send', '{}', 'completed', '[]', 1, 1, 5, 1, '{}', now(), now(),
        now(), now() - n * interval '1 ms'
      from generate_series(1, 20001) as n`;
    await addDiscarded([
      { message: 'no such address', hoursAgo: 0.5, count: 3 },
      { message: 'mailbox full', hoursAgo: 5, count: 4 },
      { message: 'certificate expired', hoursAgo: 100, count: 5 },
    ]);
    const board = dashboard();
    const text = async (hours: string) => textOf(await page(board, `/errors${hours}`));
    expect(await text('?hours=1')).toContain('3 discarded jobs with 1 cause in the last hour.');
    expect(await text('')).toContain('7 discarded jobs with 2 causes in the last 24 hours.');
    expect(await text('?hours=168')).toContain('12 discarded jobs with 3 causes in the last 7 days.');
    expect(await text('?hours=nonsense')).toContain('in the last 24 hours.');
  });

  test('say how far back they go where not all were read', async () => {
    await addDiscarded([
      { message: 'older', hoursAgo: 3, count: 1 },
      { message: 'newer', hoursAgo: 2, count: 10_000 },
    ]);
    expect(textOf(await page(dashboard(), '/errors'))).toContain(
      '10,000 discarded jobs with 1 cause among the newest 10,000 discarded jobs, which go back to 2 h ago',
    );
  });

  test('say how far back they go also to a user of whose jobs none was among them', async () => {
    await addDiscarded([{ message: 'newer', hoursAgo: 2, count: 10_000 }]);
    await database.client`update queue_results set queue = 'other'`;
    await addDiscarded([{ message: 'older', hoursAgo: 3, count: 5 }]);
    const text = textOf(await page(dashboard(['mail']), '/errors'));
    expect(text).not.toContain('Nothing was discarded');
    expect(text).toContain(
      '0 discarded jobs among the newest 10,000 discarded jobs, which go back to 2 h ago',
    );
  });

  test('count the jobs of all causes, also of those that are not listed', async () => {
    await addDiscarded(
      [...'abcdefghijk'].flatMap((first) =>
        [...'abcdefghijk'].map((second) => ({ message: `no ${first}${second}`, hoursAgo: 2, count: 2 })),
      ),
    );
    const html = await page(dashboard(), '/errors');
    expect(html.match(/id="cause-/g)).toHaveLength(100);
    expect(textOf(html)).toContain('242 discarded jobs with 100 or more causes in the last 24 hours.');
  });

  test('are put back as far as the page is about them', async () => {
    await addDiscarded([
      { message: 'no such address', hoursAgo: 0.5, count: 3 },
      { message: 'no such address', hoursAgo: 5, count: 4 },
    ]);
    const board = dashboard();
    const html = await page(board, '/errors?hours=1');
    expect(textOf(html)).toContain('3 jobs are due again');
    const form = formsOf(html).find(({ action }) => action.endsWith('/redrive-cause'));
    await post(board, String(form?.action), form?.fields ?? {});
    const [left] = await database.client`
      select (select count(*)::int from queue_jobs) as live, (select count(*)::int from queue_results) as ended`;
    expect(left).toEqual({ live: 3, ended: 4 });
  });
});

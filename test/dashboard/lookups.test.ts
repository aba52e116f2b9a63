import { createQueue } from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { atFaultPoints } from '../../src/core/sql/fault-point.ts';
import { addJobs, clearTables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { another, page, textOf } from './support/visits.ts';

const database = useTestDatabase();
/** More than a page reads where no index finds what is sought. */
const NEWER = 100_100;

/** The ids of all pages that a filter leads to, by its links, and how often one had to search on. */
async function idsOf(filter: string, most = Number.POSITIVE_INFINITY) {
  const create = () =>
    createDashboard({ db: another(database.db), queue: createQueue(), authorize: () => 'read' });
  let dashboard = create();
  const ids: number[] = [];
  let [path, searches]: [string | undefined, number] = [`/jobs?${new URLSearchParams({ q: filter })}`, 0];
  while (path !== undefined && ids.length < most) {
    const html: string = await page(dashboard, path);
    // A machine may be so busy that nothing answers within the time that a page waits.
    if (html.includes('The database took too long')) {
      dashboard = create();
      continue;
    }
    ids.push(...[...html.matchAll(/id="job-(\d+)"/g)].map(([, id]) => Number(id)));
    const next = /rel="next" href="([^"]+)"/.exec(html)?.[1];
    const on = /href="([^"]+)">Continue searching</.exec(html)?.[1];
    if (next === undefined && on !== undefined) searches++;
    path = (next ?? on)?.replaceAll('&amp;', '&');
  }
  return { ids, searches };
}

/** So many completed jobs; answers their ids. */
async function addResults(key: string | null, group: string | null, count: number): Promise<number[]> {
  const rows = await database.client<{ job_id: string }[]>`
    insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence, metadata,
      worker_id, created_at, run_at, claimed_at, finished_at, unique_key, group_key)
    select nextval('queue_jobs_id_seq'), 'a', 'ended', '{}', 'completed', '[]', 1, 20, 5, 1, '{}', 1, now(), now(), now(), now(),
      ${key}::text, ${group}::text
    from generate_series(1, ${count}::int) returning job_id`;
  return rows.map(({ job_id }) => Number(job_id));
}

describe(`of jobs behind ${NEWER} newer ones`, () => {
  let [due, keyed, running, grouped, replaceable, throttled]: number[] = [];
  let ended: number[] = [];
  let endedTogether: number[] = [];
  let retried: number[] = [];
  let above: number[] = [];

  beforeAll(async () => {
    await clearTables(database.client);
    [due, keyed, running, grouped, replaceable, throttled] = await addJobs(database.client, [
      { kind: 'the-due', queue: 'a', dueInMs: -3_600_000 },
      { kind: 'the-keyed', queue: 'b', uniqueKey: 'order-7' },
      { kind: 'the-running', queue: 'c', workerId: 3, attempt: 1, dueInMs: -7_200_000 },
      { kind: 'the-grouped', queue: 'd', dueInMs: 50_000 },
      { kind: 'the-replaceable', queue: 'd', dueInMs: 55_000 },
      { kind: 'the-replaceable', queue: 'd', dueInMs: 56_000 },
    ]);
    retried = await addJobs(
      database.client,
      Array.from({ length: 120 }, (_, n) => ({ queue: 'e', dueInMs: 60_000 + n, priority: n % 3 })),
    );
    await database.client`update queue_jobs set group_key = 'acme' where id = ${Number(grouped)}`;
    await database.client`update queue_jobs set waiting_key = 'draft-7' where id = ${Number(replaceable)}`;
    await database.client`
      update queue_jobs set waiting_key = 'throttle:draft-7' where id = ${Number(throttled)}`;
    endedTogether = await addResults(null, 'initech', 120);
    ended = await addResults('order-6', 'umbrella', 1);
    ended.push(...(await addResults(null, null, NEWER)));
    above = await addJobs(database.client, [{ kind: 'ended', queue: 'f', dueInMs: 172_800_000 }]);
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts, run_at, unique_key)
      select 'q' || n % 3, 'newer-' || n % 5, '{}', 20, now() + interval '1 day', nullif(n % 100, 1)::text || n
      from generate_series(1, ${NEWER}::int) as n`;
  }, 120_000);

  test.each([
    ['its id', () => `#${due}`, () => [due]],
    ['its unique key', () => 'key:order-7', () => [keyed]],
    ['its key, kind and queue', () => 'key:order-7 kind:the-keyed queue:b', () => [keyed]],
    ['the state running', () => 'state:running', () => [running]],
    ['its worker', () => 'state:running worker:3', () => [running]],
    ['the state due, the longest due first', () => 'state:due', () => [due, keyed]],
    ['the key by which it waits', () => 'key:draft-7', () => [throttled, replaceable]],
    ['the key that it had', () => 'key:order-6', () => [ended[0]]],
    ['the group that it was in', () => 'group:umbrella', () => [ended[0]]],
    ['what became of it', () => 'state:completed group:umbrella key:order-6', () => [ended[0]]],
    ['its group', () => 'group:acme', () => [grouped]],
    ['its group and state', () => 'group:acme state:scheduled', () => [grouped]],
    ['its queue and state', () => 'queue:c state:running', () => [running]],
  ])('%s finds it at once', async (_, filter, expected) => {
    const { ids, searches } = await idsOf(filter());
    expect(ids).toEqual(expected());
    expect(searches).toBe(0);
  });

  test('the next to be due are first, page by page, each once', async () => {
    const { ids } = await idsOf('state:scheduled', 123);
    expect(ids.slice(0, 123)).toEqual([grouped, replaceable, throttled, ...retried]);
  });

  test('the ended jobs of a group are listed page by page, the newest first, each once', async () => {
    expect(await idsOf('group:initech')).toEqual({ ids: endedTogether.toReversed(), searches: 0 });
    expect(await idsOf('group:initech state:completed kind:ended')).toEqual({
      ids: endedTogether.toReversed(),
      searches: 0,
    });
    expect(await idsOf('group:initech kind:none')).toEqual({ ids: [], searches: 0 });
  });

  test('a live job that is newer than a page full of results is listed before them', async () => {
    const { ids, searches } = await idsOf('kind:ended', 100);
    expect(ids).toEqual([...above, ...ended.slice(-(ids.length - 1)).toReversed()]);
    expect(ids).toHaveLength(100);
    // Once for the newer live jobs.
    expect(searches).toBe(1);
  });

  test('a filter that no index serves says how far it has looked, and goes on', async () => {
    const dashboard = createDashboard({
      db: another(database.db),
      queue: createQueue(),
      authorize: () => 'read',
    });
    const text = textOf(await page(dashboard, '/jobs?q=kind%3Athe-due'));
    expect(text).toContain(
      'Searched the newest 100,000 of each table. There may be more jobs. Continue searching',
    );
    // Once for the newer live jobs, and once for the results between.
    expect(await idsOf('kind:the-due')).toEqual({ ids: [due], searches: 2 });
    // In the order of run_at all that are scheduled are read, part by part.
    const { ids, searches } = await idsOf('state:scheduled kind:newer-0', 1);
    expect(ids).toHaveLength(50);
    expect(searches).toBe(0);
    const none = await idsOf('state:scheduled kind:none');
    expect(none.ids).toEqual([]);
    expect(none.searches).toBeGreaterThan(3);
  });
});

test.each([
  ['-infinity', 'due'],
  ['4713-11-25 BC', 'due'],
  ['0044-03-15 BC', 'due'],
  ['1969-12-31 23:59:59.999999+00', 'due'],
  ['9999-12-31', 'scheduled'],
  ['200000-01-01', 'scheduled'],
  ['infinity', 'waiting'],
])('jobs of %s are listed page by page, each once', async (at, state) => {
  await clearTables(database.client);
  const ids = await addJobs(
    database.client,
    Array.from({ length: 120 }, () => ({})),
  );
  await database.client`update queue_jobs set run_at = ${at}::timestamptz`;
  expect((await idsOf(`state:${state}`, 240)).ids).toEqual(ids);
});

test('a search that reads as far as it may passes over no job while others end', async () => {
  await clearTables(database.client);
  const [sought] = await addJobs(database.client, [{ kind: 'sought' }]);
  await database.client`
    insert into queue_jobs (queue, kind, payload, max_attempts)
    select 'q', 'newer', '{}', 20 from generate_series(1, 100_010)`;
  onTestFinished(() => atFaultPoints());
  atFaultPoints(async (point) => {
    if (point !== 'jobs: browsed') return;
    await database.client`
      delete from queue_jobs where id in (select id from queue_jobs order by id desc limit 50)`;
  });
  expect((await idsOf('kind:sought')).ids).toEqual([sought]);
}, 120_000);

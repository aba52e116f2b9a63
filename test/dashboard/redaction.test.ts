import { text } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, defineSchedule, limitsIn, schedulesIn, unvalidated } from 'drizzle-queue';
import { type ActionDone, createDashboard, type LookOptions, type ShownField } from 'drizzle-queue/dashboard';
import { createQueueTables } from 'drizzle-queue/schema';
import { createControlTables } from 'drizzle-queue/schema/control';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { addJob, clearTables } from '../queries/support/jobs.ts';
import { endJob } from '../queue/support/lives.ts';
import { addControlTables } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { another, formsOf, get, page, post, textOf } from './support/visits.ts';

const database = useTestDatabase();
const done: ActionDone[] = [];
const AT = '2026-01-01T00:00:00.000Z';

const tables = createQueueTables({ prefix: 'own_', columns: { tenant: text('tenant') } });
const control = createControlTables({ prefix: 'own_' });
const queue = createQueue({
  tables,
  schedules: schedulesIn(control.queueSchedules),
  limits: limitsIn(control, { q: { groups: { concurrency: 1 } } }),
});
const plain = createQueue();

beforeAll(async () => {
  await addControlTables(database);
  for (const table of ['schedules', 'limits', 'usage', 'groups', 'holds', 'notes', 'keys']) {
    await database.client.unsafe(`alter table queue_${table} rename to own_${table}`);
  }
  for (const table of ['jobs', 'results', 'workers', 'pauses']) {
    await database.client.unsafe(`create table own_${table} (like queue_${table} including all)`);
    if (table === 'jobs' || table === 'results')
      await database.client.unsafe(`alter table own_${table} add tenant text`);
  }
});
beforeEach(async () => {
  await clearTables(database.client);
  await emptyTables(
    database.client,
    'own_jobs',
    'own_results',
    'own_workers',
    'own_schedules',
    'own_limits',
    'own_groups',
    'own_holds',
    'own_keys',
    'own_notes',
  );
  done.length = 0;
});

function dashboardFor(of: typeof queue | typeof plain, options: Partial<LookOptions> = {}) {
  return createDashboard({
    db: another(database.db),
    queue: of,
    authorize: () => 'write',
    onAction: (action) => void done.push(action),
    ...options,
  });
}

/** Every page, those of single jobs, what a click leads to, and every download. */
function pathsOf(ids: readonly number[]): string[] {
  return [
    '/',
    '/jobs',
    '/jobs?q=state%3Adiscarded',
    '/errors',
    '/queues',
    '/schedules',
    '/limits',
    '/workers',
    '/database',
    '/jobs/many?action=cancel&of=all&q=',
    ...ids.flatMap((id) => [
      `/jobs/${id}`,
      ...['payload', 'output', 'metadata', 'progress'].map((field) => `/jobs/${id}/${field}`),
    ]),
  ];
}

/** Rows in every table, with a text in each of their fields that may hold one of the app's users. */
async function plant(mark: (field: string) => string): Promise<number[]> {
  const error = (field: string) => ({
    attempt: 1,
    name: mark(`${field}-name`),
    message: `${mark(`${field}-message`)} [cause] ${mark(`${field}-cause`)}`,
    stack: mark(`${field}-stack`),
    startedAt: AT,
    at: AT,
  });
  const json = (field: string) => JSON.stringify({ [mark(`${field}-key`)]: mark(field) });
  const { client } = database;
  const ids: number[] = [];
  for (const [n, cancelled] of [false, true].entries()) {
    const [row] = await client<{ id: string }[]>`
      insert into own_jobs (queue, kind, payload, metadata, progress, unique_key, waiting_key, group_key, tenant, errors, run_at,
        max_attempts, cancel_reason, worker_id, claimed_at)
      values ('q', 'k', ${json('payload')}::text::jsonb, ${json('metadata')}::text::jsonb,
        ${json('progress')}::text::jsonb, ${`${mark('key')}-${n}`}, ${`${mark('waiting-key')}-${n}`}, ${mark('group')}, ${mark('own')},
        ${JSON.stringify([error('live')])}::text::jsonb, now() - interval '1 s', 20,
        ${cancelled ? mark('reason') : null}, ${cancelled ? 1 : null}, ${cancelled ? AT : null})
      returning id`;
    ids.push(Number(row?.id));
  }
  for (const [id, state] of [
    [1_000_001, 'completed'],
    [1_000_002, 'discarded'],
    [1_000_003, 'cancelled'],
  ] as const) {
    await client`
      insert into own_results (job_id, queue, kind, payload, output, state, errors, attempt, max_attempts, priority, fence,
        metadata, unique_key, group_key, tenant, worker_id, created_at, run_at, claimed_at, finished_at)
      values (${id}, 'q', 'k', ${json('payload')}::text::jsonb, ${json('output')}::text::jsonb, ${state},
        ${JSON.stringify([error('ended')])}::text::jsonb, 1, 20, 5, 1, ${json('metadata')}::text::jsonb,
        ${mark('ended-key')}, ${mark('ended-group')}, ${mark('ended-own')}, 1, now(), now(), now(), now())`;
    ids.push(id);
  }
  await client`insert into own_workers (name, node, queues, seen_at)
    values (${mark('worker')}, ${mark('node')}, '["q"]', now() - interval '2 h')`;
  await client`insert into own_groups (queue, group_key, ready_at) values ('q', ${mark('blocked')}, 'infinity')`;
  await client`insert into own_keys (queue, kind, key, until) values ('q', 'k', ${mark('kept-key')}, 'infinity')`;
  await client`
    insert into own_notes (queue, group_keys, due_at) values ('q', array[${mark('noted')}], now() + interval '1 h')`;
  await client`
    insert into own_holds (queue, group_key, job_id, until)
    values ('q', ${mark('blocked')}, ${ids[0] ?? 0}, 'infinity')`;
  const job = defineJob('nightly', { payload: unvalidated<unknown>(), queue: 'q' });
  await queue.schedules.set(
    database.db,
    defineSchedule(mark('schedule'), {
      job,
      payload: { a: mark('tick') },
      cron: '0 3 * * *',
      options: { tenant: mark('tick-own'), group: mark('tick-group') },
    }),
  );
  await queue.limits.set(database.db, { queue: 'q', group: mark('limit') }, { concurrency: 3 });
  return ids;
}

/** Names and settings that the app's code contains, and what the library itself writes. */
const OF_THE_APP = /\.(queues?|kinds?|state|cron|time_zone|catch_up|held|rate_used|leases)$/;

/** The columns of texts and values, of all tables of this queue, in which no marker is planted. */
async function unmarked(): Promise<string[]> {
  const columns = await database.client<{ table: string; name: string }[]>`
    select table_name as table, column_name as name from information_schema.columns
    where table_schema = 'public' and data_type in ('text', 'jsonb', 'json', 'character varying', 'ARRAY')
      and (starts_with(table_name, 'own_') or table_name not in ('queue_jobs', 'queue_results', 'queue_workers', 'queue_pauses'))
    order by 1, 2`;
  const without: string[] = [];
  for (const { table, name } of columns) {
    const [row] = await database.client.unsafe(
      `select coalesce(bool_or("${name}"::text like '%MARK%'), false) as marked from "${table}"`,
    );
    if (row?.marked !== true && !OF_THE_APP.test(`${table}.${name}`)) without.push(`${table}.${name}`);
  }
  return without;
}

describe('every value is shown as one function decides', () => {
  test('a marker in every field of every table is on no page and in no download once the function hides it', async () => {
    const ids = await plant((field) => `MARK-${field}`);
    expect(await unmarked()).toEqual([]);
    // They would be seen without the function: the pages do show these fields.
    const seen = await everything(dashboardFor(queue), ids);
    for (const field of [
      'payload',
      'payload-key',
      'output',
      'metadata',
      'progress',
      'key',
      'group',
      'own',
      'live-name',
      'live-message',
      'live-cause',
      'live-stack',
      'ended-name',
      'ended-message',
      'ended-own',
      'worker',
      'blocked',
      'schedule',
      'limit',
    ])
      expect(seen, field).toContain(`MARK-${field}`);
    const asked = new Set<string>();
    const hiding = dashboardFor(queue, {
      show: ({ field }) => {
        asked.add(field);
        return null;
      },
    });
    expect(await everything(hiding, ids)).not.toContain('MARK');
    expect([...asked].sort()).toEqual([
      'error',
      'errorName',
      'finding',
      'group',
      'metadata',
      'output',
      'own',
      'payload',
      'progress',
      'schedule',
      'uniqueKey',
      'worker',
    ]);
  });

  test('a rule by own columns hides wherever a value of the job stands', async () => {
    const ids = await plant((field) => `MARK-${field}`);
    const dashboard = dashboardFor(queue, {
      show: ({ job, text }) => (String(job?.own.tenant ?? 'MARK').includes('MARK') ? null : text),
    });
    expect(await everything(dashboard, ids)).not.toContain('MARK');
    expect(await page(dashboard, '/errors')).toContain('hidden');
  });

  test('a function that throws, or forgets to return, hides', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    const ids = await plant((field) => `MARK-${field}`);
    for (const show of [
      (): string => {
        throw new Error('no');
      },
      () => undefined as never,
      async () => 'MARK' as never,
    ])
      expect(await everything(dashboardFor(queue, { show: show as LookOptions['show'] }), ids)).not.toContain(
        'MARK',
      );
    expect(printed).toHaveBeenCalledOnce();
    printed.mockRestore();
  });

  test('what is shown changed stands in no link, no form and no id either', async () => {
    const ids = await plant((field) => `MARK-${field}`);
    const dashboard = dashboardFor(queue, { show: ({ text }) => text.replaceAll('MARK', '***') });
    const html = await everything(dashboard, ids);
    expect(html).not.toContain('MARK');
    expect(html).toContain('***-own');
    expect(html).toContain('***-output');
  });

  test('a list of schedules whose names are hidden goes on without them', async () => {
    const job = defineJob('nightly', { payload: unvalidated<unknown>(), queue: 'q' });
    for (let n = 0; n < 60; n++) {
      const schedule = defineSchedule(`MARK-${n}`, { job, payload: {}, cron: '0 3 * * *' });
      await queue.schedules.set(database.db, schedule);
    }
    const dashboard = dashboardFor(queue, {
      show: ({ field, text }) => (field === 'schedule' ? null : text),
    });
    const first = await page(dashboard, '/schedules');
    const [, next = ''] = /rel="next" href="([^"]+)"/.exec(first) ?? [];
    const second = await page(dashboard, next);
    expect([first, second].map((html) => html.match(/class="row-link"/g)?.length)).toEqual([50, 10]);
    expect(first + second).not.toContain('MARK');
  });

  test('a search that would tell a hidden value is refused, and one for a shown value is not', async () => {
    await plant((field) => `mark-${field}`);
    const paths = ['key:mark-key-0', 'group:mark-group', 'tenant:mark-own', 'payload.a:1'];
    const hiding = dashboardFor(queue, { show: () => null });
    const careful = dashboardFor(queue, {
      show: ({ job, text }) => (job as NonNullable<typeof job>).kind && text,
    });
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    for (const dashboard of [hiding, careful])
      for (const path of paths)
        expect(textOf(await page(dashboard, `/jobs?q=${encodeURIComponent(path)}`)), path).toContain(
          'redacted here',
        );
    printed.mockRestore();
    const masking = dashboardFor(queue, { show: ({ text }) => text.replaceAll(/\d{16}/g, '…') });
    for (const path of paths.slice(0, 3))
      expect(await page(masking, `/jobs?q=${encodeURIComponent(path)}`), path).toContain('id="job-');
  });

  test('a failed query is printed without its parameters', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    const db = another(database.db);
    db.transaction = () =>
      Promise.reject(
        Object.assign(new Error('Failed query: select $1\nparams: MARK', { cause: new Error('lost') }), {
          query: 'select $1',
          params: ['MARK'],
        }),
      );
    const dashboard = createDashboard({ db, queue: plain, authorize: () => 'read' });
    expect((await get(dashboard, '/jobs?q=key%3AMARK')).status).toBe(500);
    const lines = JSON.stringify(printed.mock.calls);
    printed.mockRestore();
    expect(lines).toContain('lost');
    expect(lines).not.toContain('MARK');
  });

  test('the audit says what the page says', async () => {
    await plant((field) => `MARK-${field}`);
    const printed = vi.spyOn(console, 'info').mockImplementation(() => {});
    const dashboard = dashboardFor(queue, { show: () => null, onAction: undefined });
    const form = formsOf(await page(dashboard, '/errors')).find(({ action }) => action.endsWith('-cause'));
    expect((await post(dashboard, String(form?.action), form?.fields ?? {})).status).toBe(303);
    await post(dashboard, '/actions/unblock', { queue: 'q', group: 'MARK-blocked' });
    await post(dashboard, '/actions/pause-schedule', { name: 'MARK-schedule' });
    const lines = printed.mock.calls.map(String).join();
    printed.mockRestore();
    expect(lines).toContain('redrive q k hidden hidden');
    expect(lines).not.toContain('MARK');
  });
});

/** All pages and downloads, and what their answers say beside the body. */
async function everything(
  dashboard: ReturnType<typeof dashboardFor>,
  ids: readonly number[],
): Promise<string> {
  const texts: string[] = [];
  for (const path of pathsOf(ids)) {
    const answer = await get(dashboard, path);
    expect([200, 404], path).toContain(answer.status);
    texts.push(JSON.stringify([...answer.headers]), await answer.text());
  }
  return texts.join('\n');
}

describe('a group of errors', () => {
  const discard = async (messages: readonly string[]) => {
    for (const message of messages) {
      const errors = [{ attempt: 1, name: 'E', message, at: AT }];
      await addJob(database.client, { kind: 'k', errors });
    }
    await endJob(database.db, { kind: 'k', state: 'discarded', limit: 100 });
    for (const [n, message] of messages.entries()) {
      await database.client`
        update queue_results set errors = ${JSON.stringify([{ attempt: 1, name: 'E', message, at: AT }])}::text::jsonb
        where job_id = (select job_id from queue_results order by job_id offset ${n} limit 1)`;
    }
  };
  const formIn = (html: string) => formsOf(html).find(({ action }) => action.endsWith('/redrive-cause'));

  test('is named by its jobs in forms, so no form says what is hidden', async () => {
    await discard(['password hunter of ann']);
    const html = await page(dashboardFor(plain, { show: () => null }), '/errors');
    expect(html).not.toContain('hunter');
    expect(Object.keys(formIn(html)?.fields ?? {}).sort()).toEqual(['asof', 'back', 'hours', 'newest']);
    expect(formIn(html)?.fields.newest).toMatch(/^\d+$/);
  });

  test('is put back by another process than the one that made the page', async () => {
    await discard(['no 1', 'no 2', 'other']);
    const show = (_: ShownField) => null;
    const form = formIn(await page(dashboardFor(plain, { show }), '/errors'));
    const elsewhere = await post(dashboardFor(plain, { show }), String(form?.action), form?.fields ?? {});
    expect(elsewhere.headers.get('location')).toBe('/errors?done=redriven&n=2');
    const again = await post(dashboardFor(plain, { show }), String(form?.action), form?.fields ?? {});
    expect(again.headers.get('location')).toBe('/errors?done=none&n=0');
    expect(done[0]).toMatchObject({ target: { queue: 'q', kind: 'k', error: 'hidden', cause: 'hidden' } });
  });

  test('is found by another of its jobs when the newest is put back already', async () => {
    await discard(['no 1', 'no 2', 'no 3']);
    const dashboard = dashboardFor(plain);
    const form = formIn(await page(dashboard, '/errors'));
    const [newest = ''] = String(form?.fields.newest).split(' ');
    await post(dashboard, '/actions/redrive', { id: newest });
    const rest = await post(dashboard, String(form?.action), form?.fields ?? {});
    expect(rest.headers.get('location')).toBe('/errors?done=redriven&n=2');
  });
});

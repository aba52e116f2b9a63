import { createQueue, defineJob, defineSchedule, limitsIn, schedulesIn, unvalidated } from 'drizzle-queue';
import { type Authorization, createDashboard, type LookOptions } from 'drizzle-queue/dashboard';
import * as control from 'drizzle-queue/schema/control';
import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { addJob, addJobs, clearTables } from '../queries/support/jobs.ts';
import { endJob } from '../queue/support/lives.ts';
import { addControlTables, addMetricsTable } from '../support/control-tables.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { another, formsOf, get, page, post, textOf } from './support/visits.ts';

const database = useTestDatabase();
const queue = createQueue({
  schedules: schedulesIn(control.queueSchedules),
  limits: limitsIn(control, { q: { concurrency: 4 } }),
});
const sendReceipt = defineJob('send-receipt', { payload: unvalidated<unknown>(), queue: 'q' });

function dashboardFor(authorization: Authorization = 'write', options: Partial<LookOptions> = {}) {
  return createDashboard({
    db: another(database.db),
    queue,
    basePath: '/admin/queue',
    authorize: () => authorization,
    onAction: () => {},
    ...options,
  });
}

beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await emptyTables(database.client, 'queue_schedules', 'queue_pauses', 'queue_workers');
});

const PAGES = ['', '/jobs', '/errors', '/queues', '/schedules', '/limits', '/workers', '/database'];

test.each([
  ['of a known queue', 'q', /Due \? .* Running \? /],
  ['of no known queue', undefined, /Retrying \? /],
])(
  'the overview does not say that no jobs are waiting where it could not count any: %s',
  async (_, known, says) => {
    if (known !== undefined) await queue.pause(database.db, known);
    const dashboard = dashboardFor();
    const text = await database.client.begin(async (tx) => {
      await tx`lock table queue_jobs in access exclusive mode`;
      return textOf(await page(dashboard, '/admin/queue'));
    });
    expect(text).toMatch(says);
    expect(text).not.toContain('All quiet');
  },
);

describe('every page', () => {
  test.each(PAGES)('%s says what would fill it while nothing is there, and nothing inline', async (path) => {
    const answer = await get(dashboardFor(), `/admin/queue${path}`);
    const html = await answer.text();
    expect(answer.status, textOf(html)).toBe(200);
    expect(html).toMatch(/^<!doctype html><html lang="en">/);
    expect(html).not.toMatch(/ style=|<style|<script(?![^>]* src=)| on[a-z]+=|javascript:/i);
    expect(html).not.toMatch(/(src|href|action)="(?!\/admin\/queue(\/|\?|")|#)/);
    expect(answer.headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    );
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(answer.headers.get('referrer-policy')).toBe('same-origin');
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.has('strict-transport-security')).toBe(false);
  });

  test('is at the base path with and without a slash, and where a router has taken it off', async () => {
    for (const path of ['/admin/queue', '/admin/queue/', '/']) {
      expect(textOf(await page(dashboardFor(), path))).toContain('Overview');
    }
    expect(textOf(await page(dashboardFor(), '/jobs'))).toContain('No job yet');
  });

  test('may be at a base path that is also the path of a page, where no router takes it off', async () => {
    const dashboard = dashboardFor('read', { basePath: '/jobs' });
    expect(await page(dashboard, '/jobs')).toContain('<h1>Overview</h1>');
    expect(await page(dashboard, '/jobs/jobs')).toContain('<h1>Jobs</h1>');
    const id = await addJob(database.client);
    expect(await page(dashboard, `/jobs/jobs/${id}`)).toContain(`<h1>k #${id}</h1>`);
  });

  test('at the root of a host', async () => {
    const html = await page(dashboardFor('read', { basePath: '/' }), '/');
    expect(html).toContain('href="/jobs"');
    expect(html).not.toContain('href="//');
  });

  test('answers 304 while nothing has changed but the clock', async () => {
    await addJob(database.client, { dueInMs: -60_000 });
    const dashboard = dashboardFor();
    const first = await get(dashboard, '/admin/queue/jobs');
    const etag = String(first.headers.get('etag'));
    await expect
      .poll(async () => (await page(dashboard, '/admin/queue/jobs')) === (await first.clone().text()))
      .toBe(false);
    const again = await get(dashboard, '/admin/queue/jobs', { 'if-none-match': etag });
    expect(again.status).toBe(304);
    expect(await again.text()).toBe('');
    await addJob(database.client);
    // The answer is kept for a hundred times as long as it took.
    await until(async () => {
      const { status } = await get(dashboard, '/admin/queue/jobs', { 'if-none-match': etag });
      return status === 200;
    });
  });

  test('the first page with all that it loads is at most 45 kB over the wire', async () => {
    await addJobs(
      database.client,
      Array.from({ length: 30 }, (_, index) => ({ queue: `queue-${index}` })),
    );
    const dashboard = dashboardFor();
    const asked = { 'accept-encoding': 'gzip, br' };
    const html = await page(dashboard, '/admin/queue');
    const assets = [...html.matchAll(/(?:src|href)="(\/admin\/queue\/assets\/[^"]+)"/g)].map(
      ([, path = '']) => path,
    );
    expect(assets).toHaveLength(4);
    let bytes = 0;
    for (const path of ['/admin/queue', ...assets]) {
      const answer = await get(dashboard, path, asked);
      const body = await answer.arrayBuffer();
      if (path.endsWith('.js')) expect(answer.headers.get('content-encoding')).toBe('gzip');
      bytes += body.byteLength;
    }
    expect(bytes).toBeLessThan(45_000);
  });

  test('assets never change under their name, and need no right', async () => {
    const dashboard = dashboardFor('none');
    const html = await (await get(dashboard, '/admin/queue')).text();
    const [, path = ''] = /href="([^"]+\.css)"/.exec(html) ?? [];
    const answer = await get(dashboard, path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(answer.headers.get('content-type')).toBe('text/css; charset=utf-8');
    expect((await get(dashboard, path.replace(/\.\w+\.css/, '.0000000000.css'))).status).toBe(403);
  });
});

describe('jobs', () => {
  test('of every state, newest first, with the beginning of what they are about', async () => {
    const due = await addJob(database.client, { kind: 'send-receipt', payload: { orderId: 41 } });
    await addJob(database.client, { kind: 'send-receipt', payload: { orderId: 42 } });
    await endJob(database.db, { state: 'discarded' });
    const text = textOf(await page(dashboardFor(), '/admin/queue/jobs'));
    expect(text.indexOf(`#${due + 1}`)).toBeLessThan(text.indexOf(`#${due} `));
    expect(text).toContain('"orderId": 42');
    expect(text).toContain('Error: no');
  });

  test.each([
    ['state:discarded', ['Error: no']],
    ['kind:other', ['"n": 3']],
    ['other', ['"n": 3']],
    ['queue:"a b"', ['"n": 4']],
    ['payload.n:3', ['"n": 3']],
    ['payload.text:7', ['"text": "7"']],
    ['payload.large:9007199254740993', ['9007199254740993']],
    ['key:the-key', ['"keyed": true']],
    ['after:1h', ['"n": 3', '"n": 4']],
    ['before:1h', ['No jobs match']],
    ['after:2h before:2000-01-01', ['No jobs match']],
  ])('%s', async (filter, expected) => {
    await addJob(database.client, { kind: 'send-receipt' });
    await endJob(database.db, { state: 'discarded' });
    await addJobs(database.client, [
      { kind: 'other', payload: { n: 3 } },
      { queue: 'a b', payload: { n: 4 } },
      { payload: { text: '7' } },
      { payload: { keyed: true }, uniqueKey: 'the-key' },
    ]);
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts) values ('q', 'k', '{"large": 9007199254740993}', 1),
        ('q', 'k', '{"large": 9007199254740992}', 1)`;
    const text = textOf(
      await page(dashboardFor(), `/admin/queue/jobs?${new URLSearchParams({ q: filter })}`),
    );
    for (const each of expected) expect(text).toContain(each);
    if (filter.includes('payload.large')) expect(text).not.toContain('9007199254740992');
    if (filter === 'kind:other') expect(text).not.toContain('"n": 4');
  });

  test.each([
    ['state:broken', '“broken” is not a valid value of state:'],
    ['tenant:7', 'Unknown filter “tenant:”; valid filters: state: kind:'],
    ['id:0', '“0” is not a valid value of id:'],
    ['a\0b', 'a character that PostgreSQL cannot keep'],
    [`kind:${'x'.repeat(2_001)}`, 'longer than 2000 characters'],
  ])('a filter is answered with what is wrong: %#', async (filter, problem) => {
    await addJob(database.client, { kind: 'not-shown' });
    const text = textOf(
      await page(dashboardFor(), `/admin/queue/jobs?${new URLSearchParams({ q: filter })}`),
    );
    expect(text).toContain(problem);
    expect(text).not.toContain('not-shown');
  });

  test('page by page, each once', async () => {
    await addJobs(
      database.client,
      Array.from({ length: 120 }, () => ({ kind: 'many' })),
    );
    const seen: string[] = [];
    let path: string | undefined = '/admin/queue/jobs?q=kind%3Amany';
    while (path !== undefined) {
      const html: string = await page(dashboardFor(), path);
      seen.push(...[...html.matchAll(/id="job-(\d+)"/g)].map(([, id = '']) => id));
      path = /rel="next" href="([^"]+)"/.exec(html)?.[1]?.replaceAll('&amp;', '&');
    }
    expect(seen).toHaveLength(120);
    expect(new Set(seen).size).toBe(120);
    expect(seen).toEqual([...seen].sort((a, b) => Number(b) - Number(a)));
  });
});

describe('one job', () => {
  test('with its timeline, errors, causes and values, and numbers as they are stored', async () => {
    const errors = [
      {
        attempt: 1,
        name: 'TypeError',
        message: 'no route [cause] Error: refused',
        stack: 'at send (mail.ts:3)',
        at: '2026-01-02T03:04:05.678Z',
      },
    ];
    const id = await addJob(database.client, {
      kind: 'send-receipt',
      errors,
      attempt: 1,
      dueInMs: 60_000,
      metadata: { traceparent: 'x' },
    });
    await database.client`update queue_jobs set payload = '{"big": 12345678901234567890.125}', progress = '{"percent": 40}' where id = ${id}`;
    const text = textOf(await page(dashboardFor(), `/admin/queue/jobs/${id}`));
    for (const each of [
      'Attempt 1 failed: TypeError',
      'no route',
      'caused by Error: refused',
      'at send (mail.ts:3)',
      '12345678901234567890.125',
      '40 %',
      'traceparent',
      'Runs',
      'scheduled',
    ])
      expect(text).toContain(each);
  });

  test('a value of 10 MB is cut, and can be had whole', async () => {
    const id = await addJob(database.client);
    await database.client`update queue_jobs set payload = jsonb_build_object('blob', repeat('x', 10000000)) where id = ${id}`;
    const dashboard = dashboardFor();
    const html = await page(dashboard, `/admin/queue/jobs/${id}`);
    expect(html.length).toBeLessThan(100_000);
    expect(textOf(html)).toContain('The first 65,536 of 10,000,');
    expect(textOf(await page(dashboard, '/admin/queue/jobs'))).toContain('xxx');
    const file = await get(dashboard, `/admin/queue/jobs/${id}/payload`);
    expect(file.headers.get('content-disposition')).toBe(`attachment; filename="job-${id}-payload.json"`);
    expect((await file.text()).length).toBeGreaterThan(10_000_000);
  });

  test('whose payload is not kept says so, as its row does, and one of null does not', async () => {
    const [id, ofNull] = await addJobs(database.client, [
      { kind: 'send-receipt', payload: { orderId: 7 } },
      { kind: 'send-receipt' },
    ]);
    await endJob(database.db, { keepResult: 'outcome', output: { messageId: 'm' } });
    await endJob(database.db);
    const dashboard = dashboardFor();
    const html = await page(dashboard, `/admin/queue/jobs/${id}`);
    expect(textOf(html)).toMatch(/Payload\s+not kept/);
    expect(textOf(html)).toMatch(/Output\s.*messageId/s);
    expect((await get(dashboard, `/admin/queue/jobs/${id}/payload`)).status).toBe(404);
    expect(textOf(await page(dashboard, `/admin/queue/jobs/${ofNull}`))).toMatch(/Payload\s+null/);
    const rows = textOf(await page(dashboard, '/admin/queue/jobs'));
    expect(rows.match(/not kept/g)).toHaveLength(1);
    expect(textOf(await page(dashboard, '/admin/queue/jobs?q=payload.orderId:7'))).toContain('No jobs match');
  });

  test('has a card of metadata only where there is some', async () => {
    const [none, some] = await addJobs(database.client, [{}, { metadata: { traceparent: 'x' } }]);
    const dashboard = dashboardFor();
    expect(textOf(await page(dashboard, `/admin/queue/jobs/${none}`))).not.toContain('Metadata');
    expect(textOf(await page(dashboard, `/admin/queue/jobs/${some}`))).toContain('Metadata');
  });

  test('has a link to its trace, and is there without one where the function throws', async () => {
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const [traced, untraced] = await addJobs(database.client, [{ metadata: { traceparent: trace } }, {}]);
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    const traceUrl = ({ traceparent }: { readonly traceparent?: string }) =>
      `https://traces.test/${(traceparent as string).split('-')[1]}`;
    const dashboard = dashboardFor('write', { traceUrl });
    expect(await page(dashboard, `/admin/queue/jobs/${traced}`)).toContain(
      'href="https://traces.test/4bf92f3577b34da6a3ce929d0e0e4736"',
    );
    expect(printed).not.toHaveBeenCalled();
    for (const _ of [1, 2])
      expect(await page(dashboard, `/admin/queue/jobs/${untraced}`)).not.toContain('traces.test');
    expect(printed).toHaveBeenCalledOnce();
    printed.mockRestore();
  });

  test('that is not there', async () => {
    const dashboard = dashboardFor();
    for (const path of ['/jobs/999999', '/jobs/99999999999999999999', '/jobs/1/secret', '/jobs/x'])
      expect((await get(dashboard, `/admin/queue${path}`)).status).toBe(404);
  });

  test('is cancelled by the button of its page', async () => {
    const id = await addJob(database.client);
    const dashboard = dashboardFor();
    const [form] = formsOf(await page(dashboard, `/admin/queue/jobs/${id}`));
    const answer = await post(dashboard, String(form?.action), form?.fields ?? {});
    expect(answer.status).toBe(303);
    expect(answer.headers.get('location')).toBe(`/admin/queue/jobs/${id}?done=cancelled`);
    const text = textOf(await page(dashboard, String(answer.headers.get('location'))));
    expect(text).toContain('The job is cancelled.');
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'cancelled' });
  });

  test('is redriven by the button of its page', async () => {
    const id = await addJob(database.client, { kind: 'send-receipt' });
    await endJob(database.db, { state: 'discarded' });
    const dashboard = dashboardFor();
    const [form] = formsOf(await page(dashboard, `/admin/queue/jobs/${id}`));
    expect(form?.action).toBe('/admin/queue/actions/redrive');
    const answer = await post(dashboard, String(form?.action), form?.fields ?? {});
    expect(textOf(await page(dashboard, String(answer.headers.get('location'))))).toContain(
      'Put back, due now: 1 job.',
    );
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0 });
  });

  test('a running one is asked to end, or ended at once', async () => {
    const [asked, forced] = await addJobs(database.client, [{ workerId: 3 }, { workerId: 3 }]);
    const dashboard = dashboardFor();
    const forms = formsOf(await page(dashboard, `/admin/queue/jobs/${asked}`));
    expect(forms.map(({ action }) => action)).toEqual([
      '/admin/queue/actions/cancel',
      '/admin/queue/actions/force',
    ]);
    await post(dashboard, '/admin/queue/actions/cancel', { id: String(asked) });
    await post(dashboard, '/admin/queue/actions/force', { id: String(forced) });
    expect(await queue.find(database.db, asked)).toMatchObject({
      state: 'running',
      cancelReason: 'cancelled in the dashboard',
    });
    expect(await queue.find(database.db, forced)).toMatchObject({ state: 'cancelled' });
  });
});

describe('errors', () => {
  test('are grouped by cause, whatever numbers are in them, and redriven as a group', async () => {
    for (const [n, message] of ['Order 17 is gone', 'Order 18 is gone', 'No route'].entries()) {
      const id = await addJob(database.client, { kind: 'send-receipt', payload: { n } });
      await endJob(database.db, { state: 'discarded' });
      await database.client`update queue_results set errors = ${JSON.stringify([{ attempt: 1, name: 'Gone', message, at: '2026-01-01T00:00:00.000Z' }])}::text::jsonb where job_id = ${id}`;
    }
    const dashboard = dashboardFor();
    const html = await page(dashboard, '/admin/queue/errors');
    const text = textOf(html);
    expect(text).toContain('3 discarded jobs with 2 causes');
    expect(text).toContain('2 jobs');
    const [form] = formsOf(html);
    expect(form?.fields).toMatchObject({ newest: expect.stringMatching(/^\d+ \d+$/) });
    const answer = await post(dashboard, String(form?.action), form?.fields ?? {});
    expect(answer.headers.get('location')).toBe('/admin/queue/errors?done=redriven&n=2');
    const { jobs } = await queue.list(database.db, { state: 'due' });
    expect(jobs).toHaveLength(2);
    expect((await queue.list(database.db, { state: 'discarded' })).jobs).toHaveLength(1);
  });

  test('two who press the button at once put each job back once', async () => {
    for (let n = 0; n < 40; n++) await addJob(database.client, { kind: 'send-receipt' });
    await endJob(database.db, { state: 'discarded', limit: 40 });
    const dashboard = dashboardFor();
    const [form] = formsOf(await page(dashboard, '/admin/queue/errors'));
    const answers = await Promise.all(
      [1, 2].map(() => post(dashboard, String(form?.action), form?.fields ?? {})),
    );
    const counts = answers.map((answer) =>
      Number(new URL(String(answer.headers.get('location')), 'http://x').searchParams.get('n')),
    );
    expect((counts[0] ?? 0) + (counts[1] ?? 0)).toBe(40);
    expect((await queue.list(database.db, { state: 'due', limit: 100 })).jobs).toHaveLength(40);
  });
});

describe('queues, workers, schedules and limits', () => {
  test('a queue is paused and resumed', async () => {
    await addJobs(database.client, [
      { queue: 'a/b & c' },
      { queue: 'a/b & c', dueInMs: 60_000 },
      { queue: 'a/b & c', workerId: 1 },
    ]);
    const dashboard = dashboardFor();
    const html = await page(dashboard, '/admin/queue/queues');
    expect(textOf(html)).toMatch(/a\/b & c .* 1 .* 1 .* 1/);
    const [pause] = formsOf(html);
    await post(dashboard, String(pause?.action), pause?.fields ?? {});
    expect((await queue.paused(database.db)).map(({ queue }) => queue)).toEqual(['a/b & c']);
    expect(textOf(await page(dashboard, '/admin/queue/queues'))).toContain('paused');
    const [resume] = formsOf(await page(dashboard, '/admin/queue/queues'));
    expect(resume?.action).toBe('/admin/queue/actions/resume');
    await post(dashboard, String(resume?.action), resume?.fields ?? {});
    expect(await queue.paused(database.db)).toEqual([]);
  });

  test('workers with what they hold', async () => {
    const [worker] = await database.client<{ id: string }[]>`
      insert into queue_workers (name, queues, session) values ('host:1', '["q","mail"]', 7) returning id`;
    await addJob(database.client, { workerId: Number(worker?.id) });
    const text = textOf(await page(dashboardFor(), '/admin/queue/workers'));
    expect(text).toMatch(/host:1 #\d+ q mail 1 now/);
    expect(text).toContain('session');
  });

  test('a schedule shows its next ticks, runs now, is paused and resumed', async () => {
    await queue.schedules.set(
      database.db,
      defineSchedule('nightly', { job: sendReceipt, payload: {}, cron: '0 3 * * *' }),
    );
    const dashboard = dashboardFor();
    const html = await page(dashboard, '/admin/queue/schedules');
    expect(textOf(html)).toMatch(
      /nightly .* 0 3 \* \* \* UTC in .* \d{4}-\d\d-\d\d 03:00:00 \d{4}-\d\d-\d\d 03:00:00/,
    );
    const [run, pause] = formsOf(html);
    await post(dashboard, String(run?.action), run?.fields ?? {});
    expect((await queue.list(database.db)).jobs).toMatchObject([
      { kind: 'send-receipt', metadata: { schedule: 'nightly' } },
    ]);
    await post(dashboard, String(pause?.action), pause?.fields ?? {});
    expect((await queue.schedules.find(database.db, 'nightly'))?.pausedAt).not.toBeNull();
    const [, resume] = formsOf(await page(dashboard, '/admin/queue/schedules'));
    await post(dashboard, String(resume?.action), resume?.fields ?? {});
    expect((await queue.schedules.find(database.db, 'nightly'))?.pausedAt).toBeNull();
    const gone = await post(dashboard, '/admin/queue/actions/run-schedule', { name: 'other' });
    expect(gone.status).toBe(404);
  });

  test('limits as they are declared and set', async () => {
    await queue.limits.set(database.db, { queue: 'q' }, { concurrency: 2 });
    expect(textOf(await page(dashboardFor(), '/admin/queue/limits'))).toMatch(
      /the queue 4 at once 2 at once 0/,
    );
    await queue.limits.set(database.db, { queue: 'q' }, null);
  });

  test('the overview counts what is live and what ended', async () => {
    await addJobs(database.client, [
      { kind: 'send-receipt' },
      { dueInMs: -7_200_000 },
      { dueInMs: 60_000 },
      { workerId: 1 },
    ]);
    await endJob(database.db);
    const text = textOf(await page(dashboardFor(), '/admin/queue'));
    expect(text).toMatch(/Due 1 oldest for 2 h/);
    expect(text).toMatch(/Running 1 .* Scheduled 1 .* Completed 1 in the last hour Discarded 0/);
    expect(text).toContain('Jobs per minute');
  });
});

test('many findings of one kind are one, with the worst first and all of them within', async () => {
  await addJobs(
    database.client,
    Array.from({ length: 24 }, (_, index) => ({
      queue: `late-${index}`,
      dueInMs: -3_600_000 - index * 60_000,
    })),
  );
  const dashboard = dashboardFor();
  for (const path of ['', '/database']) {
    const html = await page(dashboard, `/admin/queue${path}`);
    const list = path === '' ? html.slice(html.indexOf('Findings</h2>')) : html;
    const text = textOf(list.slice(0, list.indexOf(path === '' ? '</section>' : '</table>')));
    expect(text.match(/The due job in 'late-\d+' has waited/g)).toHaveLength(24);
    expect(list.match(/And 23 more like it/g)?.length).toBeGreaterThanOrEqual(1);
    // What is not behind a disclosure.
    const open = textOf(list.replaceAll(/<details[\s\S]*?<\/details>/g, ''));
    expect(open.match(/The due job in 'late-\d+' has waited/g)).toEqual([
      "The due job in 'late-23' has waited",
    ]);
  }
});

test('few findings of one kind stand side by side', async () => {
  await addJobs(
    database.client,
    [1, 2, 3].map((n) => ({ queue: `late-${n}`, dueInMs: -3_600_000 })),
  );
  const html = await page(dashboardFor(), '/admin/queue/database');
  const open = textOf(html.replaceAll(/<details[\s\S]*?<\/details>/g, ''));
  expect(open.match(/The due job in 'late-\d' has waited/g)).toHaveLength(3);
});

describe('limits are set', () => {
  const set = async (dashboard: ReturnType<typeof dashboardFor>, fields: Record<string, string>) =>
    await post(dashboard, '/admin/queue/actions/limit', { queue: 'q', back: '/limits', ...fields });

  test('and shown at once, and taken back', async () => {
    const dashboard = dashboardFor();
    const answer = await set(dashboard, { concurrency: '7', rate: '', per: '', weight: '' });
    expect(answer.headers.get('location')).toBe('/admin/queue/limits?done=limited');
    const html = await page(dashboard, String(answer.headers.get('location')));
    expect(textOf(html)).toMatch(/The limit is set\. .* the queue 4 at once 7 at once 0/);
    const remove = formsOf(html).find(({ action }) => action.endsWith('/remove-limit'));
    await post(dashboard, String(remove?.action), remove?.fields ?? {});
    expect(textOf(await page(dashboard, '/admin/queue/limits'))).toMatch(/the queue 4 at once –/);
    // Somebody has taken it back meanwhile.
    const again = await post(dashboard, String(remove?.action), remove?.fields ?? {});
    expect(again.headers.get('location')).toBe('/admin/queue/limits?done=unlimited');
  });

  test.each([
    [{ concurrency: '0' }, 'concurrency must be a whole number from 1 to 1000000'],
    [{ concurrency: '1e3' }, 'concurrency must be a whole number'],
    [{ concurrency: '-1' }, 'concurrency must be a whole number'],
    [{}, 'sets nothing'],
    [{ rate: '5' }, 'needs both'],
    [{ rate: '5', per: '1' }, 'rate has no effect'],
    [{ kind: 'k', concurrency: '1' }, "the kind 'k' has no declared limits"],
    [{ kind: 'k', group: 'g', concurrency: '1' }, 'to a kind or to a group'],
    [{ group: '<script>', concurrency: '1' }, 'has no groups'],
  ])('what cannot be one is refused, with the reason: %#', async (fields, message) => {
    const answer = await set(dashboardFor(), fields as Record<string, string>);
    expect(answer.status).toBe(422);
    expect(textOf(await answer.text())).toContain(message);
    expect((await queue.limits.list(database.db, { queue: 'q' })).limits).toMatchObject([
      { override: undefined },
    ]);
  });

  test('two at once: one waits for the other, and both are done', async () => {
    const dashboard = dashboardFor();
    const answers = await Promise.all(['5', '6'].map((concurrency) => set(dashboard, { concurrency })));
    expect(answers.map(({ status }) => status)).toEqual([303, 303]);
    const [limit] = (await queue.limits.list(database.db, { queue: 'q' })).limits;
    expect([5, 6]).toContain(limit?.override?.concurrency);
    await queue.limits.set(database.db, { queue: 'q' }, null);
  });
});

describe('the timeline', () => {
  const error = (attempt: number, from: string | undefined, at: string) => ({
    attempt,
    name: 'E',
    message: 'no',
    ...(from !== undefined && { startedAt: `2026-01-02T03:${from}Z` }),
    at: `2026-01-02T03:${at}Z`,
  });

  test('says in which zone its times are, once', async () => {
    const id = await addJob(database.client);
    await database.client`update queue_jobs set created_at = '2026-01-02T03:04:00Z' where id = ${id}`;
    const html = await page(dashboardFor(), `/admin/queue/jobs/${id}`);
    expect(html).toContain('datetime="2026-01-02T03:04:00.000Z"');
    expect(textOf(html).match(/Times are in UTC\./g)).toHaveLength(1);
  });

  test('says when each attempt began, when it ended and how long it took', async () => {
    const errors = [error(1, '04:05.000', '04:06.200'), error(2, '05:00.000', '05:00.250')];
    const id = await addJob(database.client, { attempt: 2, errors, dueInMs: 60_000 });
    await database.client`update queue_jobs set created_at = '2026-01-02T03:04:00Z' where id = ${id}`;
    expect(textOf(await page(dashboardFor(), `/admin/queue/jobs/${id}`))).toMatch(
      /Enqueued .* waited 5\.0 s Attempt 1 began .* ran 1\.2 s Attempt 1 failed: E .* waited 53 s Attempt 2 began .* ran 250 ms Attempt 2 failed: E/,
    );
  });

  test('of the last attempt, also where it discarded the job', async () => {
    const id = await addJob(database.client, { kind: 'send-receipt' });
    await endJob(database.db, { state: 'discarded' });
    await database.client`
      update queue_results set created_at = '2026-01-02T03:04:00Z', claimed_at = '2026-01-02T03:04:04Z',
        finished_at = '2026-01-02T03:04:06.2Z', errors = ${JSON.stringify([error(1, '04:05.000', '04:06.200')])}::text::jsonb`;
    const text = textOf(await page(dashboardFor(), `/admin/queue/jobs/${id}`));
    expect(text).toMatch(/waited 5\.0 s Attempt 1 began .* ran 1\.2 s Attempt 1 failed: E .* Discarded/);
    expect(text).not.toContain('claimed');
  });

  test.each([
    ['without a beginning', [error(1, undefined, '04:06.200')]],
    ['with one that is no time', [{ ...error(1, undefined, '04:06.200'), startedAt: 'yesterday' }]],
    ['with one after the end', [error(1, '04:09.000', '04:06.200')]],
    ['without any time', [{ attempt: 1, name: 'E', message: 'no' }]],
    ['with null', [{ ...error(1, undefined, '04:06.200'), startedAt: null }]],
  ])('of a job from before, %s, is shown all the same', async (_, errors) => {
    const id = await addJob(database.client, { attempt: 1, errors, dueInMs: 60_000 });
    const text = textOf(await page(dashboardFor(), `/admin/queue/jobs/${id}`));
    expect(text).toContain('Enqueued');
    expect(text).not.toMatch(/-\d+ ms|NaN|Invalid|Attempt 1 began/);
  });

  test('a scheduled job runs now by the button of its page', async () => {
    const id = await addJob(database.client, { dueInMs: 3_600_000 });
    const dashboard = dashboardFor();
    const form = formsOf(await page(dashboard, `/admin/queue/jobs/${id}`)).find(({ action }) =>
      action.endsWith('/run-now'),
    );
    const answer = await post(dashboard, String(form?.action), form?.fields ?? {});
    expect(answer.headers.get('location')).toBe(`/admin/queue/jobs/${id}?done=due-now&n=1`);
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due' });
    await database.client`update queue_jobs set worker_id = 3 where id = ${id}`;
    const late = await post(dashboard, String(form?.action), form?.fields ?? {});
    expect(late.headers.get('location')).toBe(`/admin/queue/jobs/${id}?done=running`);
  });
});

describe('figures', () => {
  describe('of the last hour, where the queue has metrics', () => {
    const measured = createQueue({ metrics: queueMetrics });
    const overviewFor = async (authorization: Authorization) =>
      textOf(
        await page(
          createDashboard({ db: another(database.db), queue: measured, authorize: () => authorization }),
          '/',
        ),
      );
    const report = () => database.client`
      insert into queue_metrics (at, minutes, worker_id, report, queue, kind, completed, discarded, wait, run, wait_ms, run_ms)
      select now(), 1, n, 1, 'q' || n, 'k', 70 * n, 10, '{"0": 80}', '{"4": 80}', 80, 800 from generate_series(1, 2) as n`;

    beforeAll(() => addMetricsTable(database));
    beforeEach(async () => {
      await emptyTables(database.client, 'queue_metrics');
    });
    afterAll(async () => {
      await database.client`drop table queue_metrics`;
    });

    test('are those that workers have reported', async () => {
      await report();
      const text = await overviewFor('read');
      expect(text).toMatch(/Completed 210 in the last hour Discarded 20 9 % of the last hour/);
      expect(text).toContain('Reported by workers once a minute.');
      expect(text).not.toContain('Of the jobs whose results are kept.');
      expect(text).toMatch(/Findings .*discarded/);
    });

    test('are those of the queues that somebody may see, and of no other', async () => {
      await report();
      const text = await overviewFor({ queues: ['q2', 'q3'] });
      expect(text).toMatch(/Completed 140 in the last hour Discarded 10 7 % of the last hour/);
      expect(text).toContain('Reported by workers once a minute.');
      expect(await overviewFor({ queues: ['q3'] })).toMatch(/Completed 0 in the last hour/);
    });

    test('are those of the results until a worker has reported', async () => {
      await addJob(database.client, { kind: 'send-receipt' });
      await endJob(database.db);
      for (const authorization of ['read', { queues: ['q'] }] as const) {
        const text = await overviewFor(authorization);
        expect(text).toMatch(/Completed 1 in the last hour/);
        expect(text).toContain('Of the jobs whose results are kept.');
      }
    });
  });

  test('say that a queue has waited, which no worker serves', async () => {
    await addJob(database.client, { dueInMs: -7_200_000 });
    const text = textOf(await page(dashboardFor(), '/admin/queue/database'));
    expect(text).toMatch(/Vitals .* error 2 h/);
  });
});

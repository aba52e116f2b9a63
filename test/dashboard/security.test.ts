import { integer } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  defineJob,
  defineSchedule,
  limitsIn,
  schedulesIn,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import {
  type ActionDone,
  type Authorization,
  createDashboard,
  type Dashboard,
  type LookOptions,
} from 'drizzle-queue/dashboard';
import { createQueueTables } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import postgres from 'postgres';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { addJob, addJobs, clearTables } from '../queries/support/jobs.ts';
import { endJob } from '../queue/support/lives.ts';
import { addControlTables, addWorkflowTables } from '../support/control-tables.ts';
import { migrateDatabase } from '../support/databases.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { another, formsOf, get, ORIGIN, page, post, textOf } from './support/visits.ts';

const database = useTestDatabase();
const queue = createQueue({
  schedules: schedulesIn(control.queueSchedules),
  limits: limitsIn(control, { q: { groups: { concurrency: 1 } } }),
  workflows: workflowsIn(workflowTables),
});
const done: ActionDone[] = [];

function dashboardFor(
  authorization: Authorization | ((request: Request) => Authorization | Promise<Authorization>),
  options: Partial<LookOptions> = {},
) {
  return createDashboard({
    db: another(database.db),
    queue,
    authorize: typeof authorization === 'function' ? authorization : () => authorization,
    onAction: (action) => void done.push(action),
    ...options,
  });
}

beforeAll(async () => {
  await addControlTables(database);
  await addWorkflowTables(database);
});
beforeEach(async () => {
  await clearTables(database.client);
  await emptyTables(database.client, 'queue_schedules', 'queue_pauses', 'queue_steps');
  done.length = 0;
});

const PAGES = [
  '/',
  '/jobs',
  '/jobs/1',
  '/jobs/1/payload',
  '/errors',
  '/queues',
  '/schedules',
  '/limits',
  '/workers',
  '/database',
];

describe('who may see', () => {
  test('nobody, unless authorize says so; a stranger learns nothing of the set-up', async () => {
    await addJob(database.client, { kind: 'secret-kind' });
    for (const path of PAGES) {
      const answer = await get(dashboardFor('none'), path);
      expect(answer.status).toBe(403);
      const text = textOf(await answer.text());
      expect(text).toContain('no access to this dashboard');
      expect(text).not.toMatch(/authorize|createDashboard|=>/);
      expect(text).not.toContain('secret-kind');
    }
    // Whoever forgets to return something, in JavaScript.
    expect(
      (
        await get(
          dashboardFor(() => undefined as never),
          '/jobs',
        )
      ).status,
    ).toBe(403);
  });

  test('a response of authorize is sent as it is', async () => {
    const login = () => new Response(null, { status: 303, headers: { location: '/login' } });
    const answer = await get(dashboardFor(login), '/jobs');
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/login']);
  });

  test('and so are its headers: the page of a login keeps its styles and its form', async () => {
    for (const headers of [
      { 'content-security-policy': "style-src 'unsafe-inline'", 'x-frame-options': 'SAMEORIGIN' },
      {},
    ]) {
      const login = () => new Response('<style>b{color:red}</style><form action="//id.test">', { headers });
      const answer = await get(dashboardFor(login), '/jobs');
      expect(Object.fromEntries(answer.headers)).toEqual({
        'content-type': 'text/plain;charset=UTF-8',
        ...headers,
      });
    }
  });

  test('the same response for many strangers is whole for each of them', async () => {
    const shared = new Response('Please log in', { status: 401, headers: { 'x-login': 'yes' } });
    const dashboard = dashboardFor(() => shared);
    for (let stranger = 0; stranger < 3; stranger++) {
      const answer = await get(dashboard, '/jobs');
      expect([answer.status, answer.headers.get('x-login'), await answer.text()]).toEqual([
        401,
        'yes',
        'Please log in',
      ]);
    }
    expect([...shared.headers.keys()]).not.toContain('content-security-policy');
  });

  test.each([
    ['admin', "must return 'none', 'read', 'write'"],
    [true, 'must return'],
    [[], 'must return'],
    [[{ can: 'write' }], 'must return'],
    [new Date(0), 'must return'],
    [new Map(), 'must return'],
    [new (class Account {})(), 'must return'],
    [{ can: 'write', tenant: 7 }, "the unknown property 'tenant'"],
    [{ can: 'write', where: undefined }, 'where is undefined'],
    [{ can: 'write', queues: undefined }, 'queues is undefined'],
    [{ can: 'write', queues: 'q' }, 'queues of authorize must be an array'],
    [{ can: 'write', where: {} }, 'must name a column'],
    [{ can: 'write', where: { tenantId: 1 } }, "unknown own column 'tenantId'"],
  ])('an answer that cannot be understood lets nobody in: %j', async (answer, message) => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    try {
      const refused = await get(dashboardFor(answer as never), '/jobs');
      expect(refused.status).toBe(500);
      expect(await refused.text()).not.toContain(message);
      expect(printed.mock.calls[0]?.[1]).toMatchObject({ message: expect.stringContaining(message) });
    } finally {
      printed.mockRestore();
    }
  });

  test.each<[Record<string, unknown>, string]>([
    [{}, 'authorize must be a function'],
    [{ authorize: () => 'read', basePath: 'admin' }, 'basePath must be a plain path'],
    [{ authorize: () => 'read', basePath: '//other' }, 'basePath must be a plain path'],
    [{ authorize: () => 'read', basePath: '/"><script>' }, 'basePath must be a plain path'],
    [{ authorize: () => 'read', redact: () => '' }, "unknown option 'redact'"],
    [{ authorize: () => 'read', show: true }, 'show must be a function'],
    [{ authorize: () => 'read', hosts: 'localhost' }, 'hosts must be an array'],
  ])('options that are wrong are refused at once: %#', (options, message) => {
    // @ts-expect-error They are wrong.
    expect(() => createDashboard({ db: database.db, queue, ...options })).toThrow(message);
  });
});

const RIGHTS = [
  'cancel',
  'force',
  'redrive',
  'fork',
  'runNow',
  'pause',
  'resume',
  'schedule',
  'limit',
  'unblock',
];

/** A step that a job of the queue has recorded. */
async function addStep(id: number | undefined, of = 'q'): Promise<void> {
  await database.client`
    insert into queue_steps (job_id, queue, name, kind, fence, started_at, ended_at)
    values (${Number(id)}, ${of}, 'charge', 'run', 1, now(), now())`;
}

/** Every action with fields that would have an effect. */
async function everyAction(): Promise<[right: string, path: string, fields: Record<string, string>][]> {
  const discarded = await addJob(database.client, { kind: 'broken' });
  await endJob(database.db, { kind: 'broken', state: 'discarded' });
  const [due, running, later, stepped] = await addJobs(database.client, [
    {},
    { workerId: 5 },
    { dueInMs: 3_600_000 },
    { dueInMs: 3_600_000 },
  ]);
  await addStep(stepped);
  const step = { id: String(stepped), step: 'charge' };
  const all = { of: 'all', q: 'queue:q', until: '9007199254740991' };
  const job = defineJob('nightly', { payload: unvalidated<unknown>(), queue: 'q' });
  await queue.schedules.set(
    database.db,
    defineSchedule('s', { job, payload: {}, cron: '0 3 * * *', options: { group: 'g' } }),
  );
  return [
    ['cancel', 'cancel', { id: String(due) }],
    ['force', 'force', { id: String(running) }],
    ['redrive', 'redrive', { id: String(discarded) }],
    ['redrive', 'redrive-cause', { newest: String(discarded) }],
    ['fork', 'fork', step],
    ['redrive', 'redrive-from', step],
    ['runNow', 'run-now', { id: String(later) }],
    ['redrive', 'redrive-many', all],
    ['runNow', 'run-now-many', all],
    ['cancel', 'cancel-many', { ...all, of: 'selected', ids: String(later) }],
    ['pause', 'pause', { queue: 'q' }],
    ['resume', 'resume', { queue: 'q' }],
    ['schedule', 'run-schedule', { name: 's' }],
    ['schedule', 'pause-schedule', { name: 's' }],
    ['schedule', 'resume-schedule', { name: 's' }],
    ['limit', 'limit', { queue: 'q', group: '*', concurrency: '3' }],
    ['limit', 'remove-limit', { queue: 'q', group: '*' }],
    ['unblock', 'unblock', { queue: 'q', group: 'g' }],
  ];
}

/** All that actions can change. */
async function everything(): Promise<unknown> {
  const [row] = await database.client`
    select (select jsonb_agg(to_jsonb(j) order by id) from queue_jobs as j) as jobs,
      (select jsonb_agg(to_jsonb(r) order by job_id) from queue_results as r) as results,
      (select jsonb_agg(to_jsonb(p)) from queue_pauses as p) as pauses,
      (select jsonb_agg(to_jsonb(s)) from queue_schedules as s) as schedules,
      (select jsonb_agg(to_jsonb(l)) from queue_limits as l) as limits`;
  return row;
}

describe('who may act', () => {
  test('not who may only read: no page has a form, and no action an effect', async () => {
    const actions = await everyAction();
    const before = await everything();
    const dashboard = dashboardFor('read');
    for (const path of [
      '/',
      '/jobs',
      ...actions.flatMap(([, , { id }]) => (id === undefined ? [] : `/jobs/${id}`)),
      '/errors',
      '/queues',
      '/schedules',
      '/limits',
    ])
      expect(formsOf(await page(dashboard, path))).toEqual([]);
    for (const [, path, fields] of actions) {
      expect((await post(dashboard, `/actions/${path}`, fields)).status, path).toBe(403);
    }
    expect(await everything()).toEqual(before);
    expect(done).toEqual([]);
  });

  test('each action needs its own right', async () => {
    const actions = await everyAction();
    const before = await everything();
    for (const [right, path, fields] of actions) {
      const others = RIGHTS.filter((other) => other !== right);
      const dashboard = dashboardFor({ can: Object.fromEntries(others.map((other) => [other, true])) });
      expect((await post(dashboard, `/actions/${path}`, fields)).status, path).toBe(403);
    }
    expect(await everything()).toEqual(before);
    for (const [right, path, fields] of actions) {
      const dashboard = dashboardFor({ actor: 'ann', can: { [right]: true } });
      expect((await post(dashboard, `/actions/${path}`, fields)).status, path).toBe(303);
    }
    expect(done.map(({ actor, action }) => [actor, action])).toEqual(
      actions.map(([right]) => ['ann', right]),
    );
    expect(done.find(({ action }) => action === 'cancel')).toMatchObject({
      ids: [Number(actions[0]?.[2].id)],
      outcome: 'cancelled',
      at: expect.any(Date),
    });
  });

  test('authorize is asked again for an action', async () => {
    const id = await addJob(database.client);
    const dashboard = dashboardFor((request) => (request.method === 'GET' ? 'write' : 'read'));
    const [form] = formsOf(await page(dashboard, `/jobs/${id}`));
    expect((await post(dashboard, String(form?.action), form?.fields ?? {})).status).toBe(403);
  });

  test('what onAction throws is told, after the action', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    const id = await addJob(database.client);
    const fails = () => Promise.reject(new Error('the log is full'));
    expect(
      (await post(dashboardFor('write', { onAction: fails }), '/actions/cancel', { id: String(id) })).status,
    ).toBe(500);
    expect(printed).toHaveBeenCalledOnce();
    printed.mockRestore();
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'cancelled' });
  });

  test('without onAction a line is printed, whatever a name contains', async () => {
    const printed = vi.spyOn(console, 'info').mockImplementation(() => {});
    const { onAction: _, ...options } = { db: database.db, queue, onAction: undefined };
    const dashboard = createDashboard({ ...options, authorize: () => ({ actor: 'ann', can: 'write' }) });
    await post(dashboard, '/actions/pause', { queue: 'a\nfake: line' });
    expect(printed.mock.calls).toEqual([['drizzle-queue dashboard: "ann: pause a\\nfake: line: paused"']]);
    printed.mockRestore();
  });
});

describe('forged forms', () => {
  const form = { queue: 'q' };

  test.each([
    ['no header', {}],
    ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.test' }],
    ['another site, without an origin', { 'sec-fetch-site': 'cross-site' }],
    ['a neighbour', { 'sec-fetch-site': 'same-site', origin: 'http://other.shop.test' }],
    ['an opaque origin', { origin: 'null' }],
    ['another port', { origin: 'http://shop.test:8080' }],
    ['a longer host', { origin: 'http://shop.test.evil.test' }],
    ['no web page', { origin: 'file://shop.test' }],
    ['an origin that is none', { origin: 'shop.test' }],
    ['an unknown site', { 'sec-fetch-site': 'SAME-ORIGIN' }],
    ['another site with the origin of this one', { 'sec-fetch-site': 'cross-site', origin: ORIGIN }],
    ['another site behind TLS', { origin: ORIGIN, 'x-forwarded-proto': 'https' }],
    ['text', { 'content-type': 'text/plain' }],
  ])('%s', async (_, headers) => {
    const answer = await post(
      dashboardFor('write'),
      '/actions/pause',
      form,
      headers as Record<string, string>,
    );
    expect(answer.status).toBe(403);
    expect(await queue.paused(database.db)).toEqual([]);
  });

  test.each([
    ['from the page', { 'sec-fetch-site': 'same-origin' }],
    ['from the page, over HTTP without Sec-Fetch-Site', { origin: ORIGIN }],
    [
      'behind a proxy that passes the host on',
      { origin: 'https://admin.test', 'x-forwarded-host': 'admin.test' },
    ],
    ['from a trusted origin', { origin: 'https://trusted.test' }],
  ])('are not those %s', async (_, headers) => {
    const dashboard = dashboardFor('write', { trustedOrigins: ['https://trusted.test'] });
    expect((await post(dashboard, '/actions/pause', form, headers as Record<string, string>)).status).toBe(
      303,
    );
  });

  test('a page in the clear cannot act on a host that speaks TLS', async () => {
    const dashboard = dashboardFor('write');
    const sent = async (headers: Record<string, string>) => {
      const body = String(new URLSearchParams(form));
      const type = { 'content-type': 'application/x-www-form-urlencoded' };
      const url = 'https://shop.test/actions/pause';
      return (await dashboard(new Request(url, { method: 'POST', headers: { ...type, ...headers }, body })))
        .status;
    };
    expect(await sent({ origin: 'http://shop.test' })).toBe(403);
    expect(await sent({ origin: 'http://shop.test', 'sec-fetch-site': 'cross-site' })).toBe(403);
    expect(await queue.paused(database.db)).toEqual([]);
    expect(await sent({ origin: 'https://shop.test' })).toBe(303);
  });

  test('only a form is a form, and not one of any size', async () => {
    const dashboard = dashboardFor('write');
    const json = new Request(`${ORIGIN}/actions/pause`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' },
      body: '{"queue":"q"}',
    });
    expect((await dashboard(json)).status).toBe(415);
    // One that does not say how long it is, and never ends.
    let chunks = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        chunks++;
        controller.enqueue(new Uint8Array(1_000).fill(97));
      },
    });
    const init: RequestInit & { duplex: 'half' } = { method: 'POST', body: endless, duplex: 'half' };
    const headers = { 'sec-fetch-site': 'same-origin', 'content-type': 'application/x-www-form-urlencoded' };
    const long = new Request(`${ORIGIN}/actions/pause`, { ...init, headers });
    expect((await dashboard(long)).status).toBe(415);
    expect(chunks).toBeLessThan(30);
    for (const text of ['x'.repeat(20_000), 'a\0b', '\ud800'])
      expect((await post(dashboard, '/actions/pause', { queue: text })).status).not.toBe(500);
    expect((await get(dashboard, '/actions/pause?queue=q')).status).toBe(404);
    expect((await post(dashboard, '/actions/constructor', form)).status).toBe(404);
    expect((await post(dashboard, '/actions/__proto__', form)).status).toBe(404);
  });

  test('an answer leads to a page of the dashboard, wherever the form wants to go', async () => {
    for (const base of ['/', '/admin']) {
      const dashboard = dashboardFor('write', { basePath: base });
      const prefix = base === '/' ? '' : base;
      for (const back of [
        '//evil.test',
        'https://evil.test',
        '/\\evil.test',
        '\\\\evil.test',
        '/../..//evil.test',
        'javascript:alert(1)',
        '/\r\nx: y',
        '/jobs/..//evil.test',
      ]) {
        const answer = await post(dashboard, `${prefix}/actions/pause`, { ...form, back });
        expect(answer.status).toBe(303);
        const location = new URL(String(answer.headers.get('location')), ORIGIN);
        expect(location.origin, back).toBe(ORIGIN);
        expect(location.pathname.startsWith(prefix === '' ? '/' : prefix)).toBe(true);
        expect(String(answer.headers.get('location'))).toMatch(/^\/(?![/\\])/);
      }
    }
  });
});

describe('hosts', () => {
  test('only those that are named are answered', async () => {
    const dashboard = dashboardFor('write', { hosts: ['localhost:3000', 'shop.test'] });
    expect((await get(dashboard, '/jobs', { host: 'shop.test' })).status).toBe(200);
    expect((await get(dashboard, '/jobs', { host: 'rebound.evil.test' })).status).toBe(403);
    expect((await get(dashboard, '/jobs', { host: 'localhost:3001' })).status).toBe(403);
  });
});

describe('paths', () => {
  test.each([
    '/../jobs',
    '/jobs/..%2f..%2fetc',
    '/%00',
    '/jobs/%E0%A4%A',
    '/assets/../jobs',
    '/assets/%2e%2e/x',
    '//jobs',
    '/jobs//',
    '/JOBS',
    '/jobs/-1',
    '/jobs/1e3',
    '/jobs/0x1',
  ])('%s is a page or not there, but no failure', async (path) => {
    const dashboard = dashboardFor('read', { basePath: '/admin' });
    const answer = await dashboard(new Request(`${ORIGIN}/admin${path}`));
    expect([200, 404]).toContain(answer.status);
  });
});

describe('odd values', () => {
  const ownQueue = createQueue({
    tables: createQueueTables({ prefix: 'odd_', columns: { tenantId: integer('tenant_id') } }),
  });

  beforeAll(async () => {
    for (const table of ['jobs', 'results', 'workers', 'pauses']) {
      await database.client.unsafe(`create table odd_${table} (like queue_${table} including all)`);
      if (table === 'jobs' || table === 'results')
        await database.client.unsafe(`alter table odd_${table} add tenant_id integer`);
    }
  });

  const WORDS = [
    'constructor:x',
    '__proto__:x',
    'toString:x',
    'tenantId:1.5',
    'tenantId:99999999999',
    'tenantId:x',
    'tenantId:',
    'queue:""',
    'key:""',
    'worker:0',
    'worker:9007199254740991',
    'after:99999999999999w',
  ];

  test.each([
    ...WORDS.map((word) => `/jobs?q=${encodeURIComponent(word)}`),
    ...WORDS.map((word) => `/jobs/many?action=cancel&of=all&q=${encodeURIComponent(word)}`),
    '/jobs?before=%00',
    '/jobs?q=%00',
    '/jobs?q=kind%3A%00',
    '/jobs/many?action=cancel&of=selected&id=%00',
    '/errors?after=%00',
    '/workers?after=%00',
  ])('%s gets an answer in words', async (path) => {
    const dashboard = createDashboard({
      db: another(database.db),
      queue: ownQueue,
      authorize: () => 'write',
    });
    const answer = await get(dashboard, path);
    expect([200, 404, 422]).toContain(answer.status);
    expect(textOf(await answer.text()).length).toBeGreaterThan(50);
  });

  test('a value that does not fit its column is said to be the reason', async () => {
    const dashboard = createDashboard({
      db: another(database.db),
      queue: ownQueue,
      authorize: () => 'write',
    });
    expect(textOf(await page(dashboard, '/jobs?q=tenantId%3A1.5'))).toContain('cannot compare a value');
    expect(textOf(await page(dashboard, '/jobs?q=constructor%3Ax'))).toContain(
      'Unknown filter “constructor:”',
    );
    const many = { of: 'all', q: 'tenantId:1.5', until: '9007199254740991' };
    expect((await post(dashboard, '/actions/cancel-many', many)).status).toBe(422);
  });

  test('a text that the encoding of the database lacks is said to be the reason', async () => {
    const { href } = Object.assign(new URL(database.url), { pathname: `${database.name}_latin` });
    await database.client.unsafe(`
      create database ${database.name}_latin template template0 encoding 'LATIN1' locale 'C'`);
    const client = postgres(href, { max: 2 });
    try {
      await migrateDatabase(href);
      const db = drizzle({ client });
      const dashboard = createDashboard({ db, queue: createQueue(), authorize: () => 'write' });
      await page(dashboard, '/jobs?q=kind%3Ak');
      const q = encodeURIComponent('kind:日本');
      expect(textOf(await page(dashboard, `/jobs?q=${q}`))).toContain('cannot compare a value');
      expect((await get(dashboard, `/jobs/many?action=cancel&of=all&q=${q}`)).status).toBe(422);
    } finally {
      await client.end({ timeout: 0 });
      await database.client.unsafe(`drop database ${database.name}_latin with (force)`);
    }
  });

  test('an error that no value of the viewer can have caused is not said to be theirs', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    await database.client.unsafe(`
      alter table odd_results rename to odd_hidden;
      create view odd_results as select * from odd_hidden where 1 / 0 = 1`);
    try {
      const dashboard = createDashboard({
        db: another(database.db),
        queue: ownQueue,
        authorize: () => 'write',
      });
      for (const path of [
        '/jobs',
        '/jobs?q=kind%3Ak',
        '/jobs/many?action=redrive&of=all&q=kind%3Ak',
        '/jobs/1',
      ])
        expect((await get(dashboard, path)).status, path).toBe(500);
      expect(textOf(await page(dashboard, '/jobs?q=tenantId%3A1.5'))).toContain('cannot compare a value');
    } finally {
      printed.mockRestore();
      await database.client.unsafe('drop view odd_results; alter table odd_hidden rename to odd_results');
    }
  });

  test('an error of an action is not taken for one of its filter', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    const id = await addJob(database.client);
    await database.client.unsafe(`
      create function divide() returns trigger language plpgsql as $$ begin perform 1 / 0; return old; end $$;
      create trigger divide before delete on queue_jobs for each row execute function divide()`);
    try {
      const error = expect.objectContaining({ message: 'division by zero' });
      const one = await post(dashboardFor('write'), '/actions/cancel', { id: String(id) });
      expect(one.status).toBe(500);
      expect(printed).toHaveBeenLastCalledWith('drizzle-queue dashboard:', error);
      const fields = { of: 'all', q: 'kind:k', until: '9007199254740991' };
      const many = await post(dashboardFor('write'), '/actions/cancel-many', fields);
      expect(many.headers.get('location')).toMatch(/n=0&left=1$/);
      const refused = `drizzle-queue dashboard: the database refused to change job ${id}:`;
      expect(printed).toHaveBeenLastCalledWith(refused, error);
    } finally {
      printed.mockRestore();
      await database.client.unsafe('drop trigger divide on queue_jobs; drop function divide()');
    }
  });

  test.each(['after=%00', `after=${'x'.repeat(300)}`, 'page=%F0%9F', 'page=0', `page=${'9'.repeat(300)}`])(
    '/schedules?%s gets an answer in words',
    async (query) => {
      expect([200, 404]).toContain((await get(dashboardFor('read'), `/schedules?${query}`)).status);
    },
  );

  test.each(['', ' '.repeat(201), 'ü'.repeat(101)])('a name such as %j is not found', async (name) => {
    const dashboard = dashboardFor('write');
    for (const [path, fields] of [
      ['pause', { queue: name }],
      ['resume', { queue: name }],
      ['run-schedule', { name }],
      ['pause-schedule', { name }],
      ['resume-schedule', { name }],
      ['unblock', { queue: 'q', group: name }],
      ['redrive-cause', { newest: name }],
    ] as const)
      expect((await post(dashboard, `/actions/${path}`, fields)).status, path).toBe(404);
    expect(await queue.paused(database.db)).toEqual([]);
  });
});

describe('hostile values', () => {
  const hostile = [
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    '</code></pre><script src=//evil.test>',
    '\u202egnp.exe\u202c',
    '\u0007bell\u001b[31m',
    '{{7*7}}',
  ];

  test('are shown as they are, everywhere', async () => {
    const errors = hostile.map((message, index) => ({
      attempt: index + 1,
      name: message,
      message: `${message} [cause] ${message}`,
      stack: message,
      at: '2026-01-01T00:00:00.000Z',
    }));
    const ids: number[] = [];
    for (const text of hostile) {
      ids.push(
        await addJob(database.client, {
          kind: text,
          queue: text,
          payload: { [text]: text },
          metadata: { [text]: text },
          uniqueKey: text,
          errors,
        }),
      );
      await database.client`insert into queue_pauses (queue) values (${text})`;
      await database.client`insert into queue_workers (name, queues) values (${text}, ${JSON.stringify([text])}::text::jsonb)`;
    }
    for (const text of hostile) {
      await addJob(database.client, { queue: 'q', kind: text, errors });
      await endJob(database.db, { kind: text, state: 'discarded' });
    }
    await database.client`update queue_results set errors = ${JSON.stringify(errors)}::text::jsonb`;
    const dashboard = dashboardFor({ actor: hostile[0], can: 'write' });
    const q = new URLSearchParams({ q: hostile[1] ?? '' });
    for (const path of [
      '/',
      '/jobs',
      `/jobs?${q}`,
      ...ids.map((id) => `/jobs/${id}`),
      '/errors',
      '/queues',
      '/workers',
      '/schedules',
      '/?done=%3Cscript%3E&n=%3Cscript%3E',
    ]) {
      const whole = await page(dashboard, path);
      // What stands in quotes, with its quotes escaped, is a value.
      const html = whole.replace(/="[^"<>]*"/g, '=""');
      const tags = (html.match(/<[^>]*>/g) ?? []).join('');
      expect(tags, path).not.toMatch(/<script>|<img|\son[a-z]+=|<script src=[^"]/i);
      expect(whole, path).not.toContain('src="//');
      // No character that turns the direction of what stands around it.
      expect(html, path).not.toMatch(/[^\P{C}\n]/u);
    }
    expect(await page(dashboard, `/jobs/${ids[4]}`)).toContain('\\u202egnp.exe\\u202c');
  });
});

describe('scopes', () => {
  test('of queues: nothing of another is seen or done', async () => {
    const [mine, others] = await addJobs(database.client, [
      { kind: 'seen', payload: { n: 1 } },
      { queue: 'x', kind: 'unseen-kind', payload: { n: 1 } },
    ]);
    await addStep(others, 'x');
    const broken = await addJob(database.client, { queue: 'q', kind: 'broken' });
    await endJob(database.db, { kind: 'broken', state: 'discarded' });
    await database.client`update queue_results set queue = 'x'`;
    await database.client`insert into queue_pauses (queue) values ('x-paused')`;
    const dashboard = dashboardFor({ can: 'write', queues: ['q'] });
    for (const path of [
      '/',
      '/jobs',
      '/jobs?q=payload.n%3A1',
      '/jobs?q=queue%3Ax',
      '/errors',
      '/queues',
      '/workers',
      '/schedules',
    ])
      expect(await page(dashboard, path), path).not.toMatch(/unseen-kind|broken|x-paused/);
    expect((await get(dashboard, `/jobs/${others}`)).status).toBe(404);
    expect((await get(dashboard, '/database')).status).toBe(404);
    const before = await everything();
    for (const [path, fields] of [
      ['cancel', { id: String(others) }],
      ['force', { id: String(others) }],
      ['run-now', { id: String(others) }],
      ['fork', { id: String(others), step: 'charge' }],
      ['redrive-from', { id: String(others), step: 'charge' }],
      ['limit', { queue: 'x', concurrency: '1' }],
      ['pause', { queue: 'x' }],
      ['resume', { queue: 'x-paused' }],
      ['unblock', { queue: 'x', group: 'g' }],
    ] as const)
      expect((await post(dashboard, `/actions/${path}`, fields)).status, path).toBe(404);
    const cause = await post(dashboard, '/actions/redrive-cause', { newest: String(broken) });
    expect(cause.headers.get('location')).toBe('/?done=none&n=0');
    expect(await everything()).toEqual(before);
    expect((await post(dashboard, '/actions/cancel', { id: String(mine) })).status).toBe(303);
  });
});

describe('scopes of queues', () => {
  test('a shared worker shows only the queues of the scope, and the jobs that it holds of them', async () => {
    const [worker] = await database.client<{ id: string }[]>`
      insert into queue_workers (name, queues) values ('shared', '["secret", "q", "also-secret"]') returning id`;
    await database.client`insert into queue_workers (name, queues) values ('elsewhere', '["secret"]')`;
    const workerId = Number(worker?.id);
    await addJobs(database.client, [
      { workerId },
      { queue: 'secret', workerId },
      { queue: 'secret', workerId },
    ]);
    const rowOf = async (dashboard: Dashboard) =>
      /<tr id="worker.*?<\/tr>/s.exec(await page(dashboard, '/workers'))?.[0];
    const html = await page(dashboardFor({ queues: ['q'] }), '/workers');
    expect(html).not.toMatch(/secret|elsewhere/);
    expect(textOf(String(await rowOf(dashboardFor({ queues: ['q'] }))))).toMatch(/shared #\d+ q 1 /);
    expect(await page(dashboardFor({ queues: ['none'] }), '/workers')).toContain('No worker is running');
    expect(textOf(await page(dashboardFor('read'), '/workers'))).toMatch(/secret q also-secret 3 /);
  });

  test('a page of schedules is full of those of the scope, and its link names no other', async () => {
    const schedule = (name: string, in_: string) => {
      const job = defineJob('nightly', { payload: unvalidated<unknown>(), queue: in_ });
      return queue.schedules.set(database.db, defineSchedule(name, { job, payload: {}, cron: '0 3 * * *' }));
    };
    for (let n = 100; n < 160; n++) await schedule(`a-secret-${n}`, 'x');
    for (let n = 100; n < 155; n++) await schedule(`b-own-${n}`, 'q');
    const dashboard = dashboardFor({ queues: ['q'] });
    const first = await page(dashboard, '/schedules');
    expect(first).not.toContain('a-secret');
    expect([...first.matchAll(/<tr id="schedule-/g)]).toHaveLength(50);
    const [, next = ''] = /rel="next" href="([^"]+)"/.exec(first) ?? [];
    expect(next).toBe('/schedules?page=2');
    const second = await page(dashboard, next);
    expect([...second.matchAll(/<tr id="schedule-/g)]).toHaveLength(5);
    expect(second).not.toContain('rel="next"');
    expect(await page(dashboard, '/schedules?page=99999')).not.toContain('<tr');
  });

  test('a page of schedules reads none of the pages before it, and there is a last one', async () => {
    await database.client`
      insert into queue_schedules (name, queue, kind, payload, settings, every_ms, time_zone, catch_up, overlap,
        passed_at, seen_at, created_at)
      select 's' || lpad(n::text, 5, '0'), 'q', 'k', '1', '{}', 60000, 'UTC', 'latest', true, now(), now(), now()
      from generate_series(1, 130) as n`;
    const db = another(database.db);
    let rows = 0;
    db.transaction = async (run, settings) =>
      await database.db.transaction(async (tx) => {
        const execute = tx.execute.bind(tx);
        tx.execute = (async (query: Parameters<typeof execute>[0]) => {
          const answer = await execute(query);
          rows += [...answer].length;
          return answer;
        }) as unknown as typeof execute;
        return await run(tx);
      }, settings);
    const dashboard = createDashboard({ db, queue, authorize: () => 'read' });
    const third = await page(dashboard, '/schedules?page=3');
    expect([...third.matchAll(/<tr id="schedule-/g)]).toHaveLength(30);
    expect(third).toContain('id="schedule-s00101"');
    expect(rows).toBeLessThan(50);
    const beyond = textOf(await page(dashboard, '/schedules?page=9007199254740991'));
    expect(beyond).toContain('First page');
    expect(beyond).not.toContain('No schedule yet');
  });
});

describe('scopes of tenants', () => {
  const tables = createQueueTables({
    prefix: 'tenant_',
    columns: { tenantId: integer('tenant_id').notNull() },
  });
  const tenants = createQueue({ tables });
  const job = defineJob('invoice', { payload: unvalidated<unknown>(), queue: 'q' });

  beforeAll(async () => {
    for (const table of ['jobs', 'results', 'workers', 'pauses']) {
      await database.client.unsafe(`create table tenant_${table} (like queue_${table} including all)`);
      if (table === 'jobs' || table === 'results')
        await database.client.unsafe(`alter table tenant_${table} add tenant_id integer not null`);
    }
  });

  test('nothing of another tenant is seen, found or done', async () => {
    const { id: mine } = await tenants.enqueue(database.db, job, { n: 'mine' }, { tenantId: 1 });
    const { id: other } = await tenants.enqueue(database.db, job, { n: 'others' }, { tenantId: 2 });
    const dashboard = createDashboard({
      db: database.db,
      queue: tenants,
      authorize: () => ({ can: 'write', where: { tenantId: 1 } }),
      onAction: () => {},
    });
    expect(textOf(await page(dashboard, '/jobs'))).toContain('mine');
    expect(textOf(await page(dashboard, `/jobs/${mine}`))).toContain('tenantId 1');
    for (const path of ['/jobs', '/jobs?q=tenantId%3A2', '/errors', '/'])
      expect(await page(dashboard, path)).not.toContain('others');
    expect(textOf(await page(dashboard, '/'))).toContain('Due 1');
    for (const path of [
      `/jobs/${other}`,
      `/jobs/${other}/payload`,
      '/queues',
      '/workers',
      '/database',
      '/schedules',
      '/limits',
    ])
      expect((await get(dashboard, path)).status, path).toBe(404);
    expect((await post(dashboard, '/actions/cancel', { id: String(other) })).status).toBe(404);
    expect((await post(dashboard, '/actions/pause', { queue: 'q' })).status).toBe(404);
    expect((await post(dashboard, '/actions/run-now', { id: String(other) })).status).toBe(404);
    for (const fields of [
      { of: 'all', q: '' },
      { of: 'all', q: 'tenantId:2' },
      { of: 'all', q: 'kind:invoice' },
      { of: 'selected', ids: String(other) },
    ])
      for (const action of ['cancel', 'redrive', 'run-now']) {
        if (action === 'cancel' && fields.q !== 'tenantId:2' && fields.of === 'all') continue;
        const answer = await post(dashboard, `/actions/${action}-many`, {
          ...fields,
          until: '9007199254740991',
        });
        expect(answer.headers.get('location'), JSON.stringify(fields)).toMatch(/&n=0$/);
      }
    expect((await post(dashboard, '/actions/limit', { queue: 'q', concurrency: '1' })).status).toBe(404);
    expect(await tenants.find(database.db, other)).toMatchObject({ state: 'due' });
    const all = { of: 'all', q: '', until: '9007199254740991' };
    expect((await post(dashboard, '/actions/cancel-many', all)).headers.get('location')).toMatch(/&n=1$/);
    expect(await tenants.find(database.db, mine)).toMatchObject({ state: 'cancelled' });
    expect(await tenants.find(database.db, other)).toMatchObject({ state: 'due' });
  });
});

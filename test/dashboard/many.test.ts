import { createQueue } from 'drizzle-queue';
import { type ActionDone, createDashboard, type LookOptions } from 'drizzle-queue/dashboard';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { addJob, addJobs, clearTables, fillJobs } from '../queries/support/jobs.ts';
import { endJob } from '../queue/support/lives.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { another, formsOf, get, page, post, textOf } from './support/visits.ts';

const database = useTestDatabase();
const queue = createQueue();
const done: ActionDone[] = [];

function dashboardFor(options: Partial<LookOptions> = {}) {
  return createDashboard({
    db: another(database.db),
    queue,
    authorize: () => ({ actor: 'ann', can: 'write' }),
    onAction: (action) => void done.push(action),
    ...options,
  });
}

type Dashboard = ReturnType<typeof dashboardFor>;

beforeEach(async () => {
  await clearTables(database.client);
  done.length = 0;
});

const many = (query: Record<string, string>) => `/jobs/many?${new URLSearchParams(query)}`;
const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;

/** The database refuses to change some rows, as a trigger of the app may. */
async function refuse(rows: string, code = 'P0001'): Promise<void> {
  await database.client.unsafe(`
    create function refuse() returns trigger language plpgsql as $$ begin
      raise exception 'not this one' using errcode = '${code}'; end $$;
    create trigger refuse ${rows} execute function refuse()`);
  onTestFinished(async () => {
    vi.restoreAllMocks();
    await unrefuse();
  });
}

const unrefuse = () => database.client.unsafe('drop function if exists refuse cascade');

/** Each look at the clock takes so long that a request does no more than it must. */
function hurry(): void {
  let now = performance.now();
  vi.spyOn(performance, 'now').mockImplementation(() => {
    now += 10_000;
    return now;
  });
}

/** Presses the button of a page that asks, and as often as it says that there are more. */
async function press(dashboard: Dashboard, html: string): Promise<string> {
  const [form] = formsOf(html);
  const answer = await post(dashboard, String(form?.action), form?.fields ?? {});
  if (answer.status === 303) return String(answer.headers.get('location'));
  const next = await answer.text();
  expect(next).toContain('data-goes-on');
  return await press(dashboard, next);
}

/** A page that is asked for while the jobs are locked, until it does without a count of them. */
async function uncounted(dashboard: Dashboard, path: string): Promise<string> {
  let html: Promise<string> | undefined;
  let answered = false;
  await database.client.begin(async (tx) => {
    await tx`lock table queue_jobs in access exclusive mode`;
    html = page(dashboard, path).finally(() => {
      answered = true;
    });
    // On another connection: a transaction sees the activity as it was when it first looked.
    const waiting = () => database.client`
      select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
        and query like '%max(%' and query not like '%count(%'`;
    await vi.waitUntil(async () => answered || (await waiting()).length > 0, { timeout: 20_000 });
  });
  return String(await html);
}

describe('some that are selected', () => {
  test('are cancelled, those only, and what is not to be cancelled is not counted', async () => {
    const [a, b, c] = await addJobs(database.client, [{}, { workerId: 4 }, {}]);
    const ended = await addJob(database.client, { kind: 'send-receipt' });
    await endJob(database.db);
    const dashboard = dashboardFor();
    const query = new URLSearchParams({ action: 'cancel', of: 'selected', q: 'kind:nothing' });
    for (const id of [a, b, ended]) query.append('id', String(id));
    const html = await page(dashboard, `/jobs/many?${query}`);
    expect(textOf(html)).toMatch(/2 of 3 jobs selected/);
    const location = await press(dashboard, html);
    expect(location).toBe('/jobs?q=kind%3Anothing&done=cancelled-many&n=2');
    expect(textOf(await page(dashboard, location))).toContain('2 jobs are cancelled, or told to stop.');
    expect(await Promise.all([a, b, c, ended].map(stateOf))).toEqual([
      'cancelled',
      'running',
      'due',
      'completed',
    ]);
    expect(await queue.find(database.db, b)).toMatchObject({
      cancelReason: 'cancelled in the dashboard by ann',
    });
    expect(done).toMatchObject([{ action: 'cancel', actor: 'ann', ids: [a, b], outcome: '2 cancelled' }]);
  });

  test('a job that ended between the page and the click is left out of the number', async () => {
    const [a, b] = await addJobs(database.client, [{ kind: 'send-receipt' }, { dueInMs: 60_000 }]);
    const dashboard = dashboardFor();
    const query = `/jobs/many?action=cancel&of=selected&id=${a}&id=${b}`;
    const html = await page(dashboard, query);
    await endJob(database.db);
    expect(await press(dashboard, html)).toMatch(/done=cancelled-many&n=1$/);
    expect(await stateOf(a)).toBe('completed');
    expect(textOf(await page(dashboard, query.replace(`&id=${b}`, '')))).toContain('No matching jobs');
  });

  test.each([
    [{ action: 'cancel', of: 'selected' }],
    [{ action: 'cancel', of: 'selected', id: '0' }],
    [{ action: 'cancel', of: 'selected', id: '9007199254740993' }],
    [{ action: 'cancel', of: 'selected', id: "1'--" }],
    [{ action: 'cancel', of: 'every', q: '' }],
    [{ action: 'delete', of: 'all', q: '' }],
    [{ action: 'constructor', of: 'all', q: '' }],
    [{ action: 'cancel', of: 'all', q: 'tenant:7' }],
    [{ action: 'cancel', of: 'all', q: 'id:x' }],
    [{ action: 'cancel', of: 'all', q: `kind:${'x'.repeat(3_000)}` }],
  ])('what names no jobs means none: %#', async (query: Record<string, string>) => {
    const id = await addJob(database.client);
    const dashboard = dashboardFor();
    expect(textOf(await page(dashboard, many(query)))).toContain('No job is selected');
    const { action = '', id: ids = '', ...fields } = query;
    const answer = await post(dashboard, `/actions/${action}-many`, { ...fields, ids, until: '999999' });
    expect(answer.status).toBe(404);
    expect(await stateOf(id)).toBe('due');
    expect(done).toEqual([]);
  });

  test('<script>, directions and NUL in a filter are shown, or refused, and never run', async () => {
    await addJob(database.client, { kind: '<script>\u202e' });
    const dashboard = dashboardFor();
    const html = await page(dashboard, many({ action: 'cancel', of: 'all', q: 'kind:<script>\u202e' }));
    expect(html.replace(/="[^"]*"/g, '')).not.toMatch(/<script>|\u202e/);
    expect(textOf(html)).toContain('1 job matches');
    expect(await press(dashboard, html)).toMatch(/n=1$/);
    expect(textOf(await page(dashboard, many({ action: 'cancel', of: 'all', q: 'a\0' })))).toContain(
      'No job is selected',
    );
    const fields = { of: 'all', q: 'a\0', until: '9' };
    expect((await post(dashboard, '/actions/cancel-many', fields)).status).toBe(415);
  });

  test.each([
    ['due', 0],
    ['scheduled', 60_000],
    ['retrying', 0],
    ['retrying', 60_000],
  ])('are cancelled %s as they were found, and not once they run: due in %s ms', async (state, dueInMs) => {
    const failed = { attempt: 1, errors: [{ attempt: 1, name: 'Error', message: 'x', at: '2026-01-01' }] };
    const [a = 0, b = 0] = await addJobs(database.client, [
      { ...failed, dueInMs },
      { ...failed, dueInMs },
    ]);
    const dashboard = dashboardFor();
    const html = await page(dashboard, many({ action: 'cancel', of: 'all', q: `state:${state}` }));
    const { cancelMany } = queue;
    const spy = vi.spyOn(queue, 'cancelMany').mockImplementation(async (...given) => {
      // A worker claims it in between.
      await database.client`update queue_jobs set worker_id = 4, claimed_at = now() where id = ${a}`;
      return await cancelMany.apply(queue, given);
    });
    const answer = await press(dashboard, html);
    spy.mockRestore();
    expect(answer).toMatch(/done=cancelled-many&n=1&left=1$/);
    expect([await stateOf(a), await stateOf(b)]).toEqual(['running', 'cancelled']);
    const [row] = await database.client`select cancel_reason from queue_jobs where id = ${a}`;
    expect(row).toEqual({ cancel_reason: null });
  });

  test('the longest filter also fits where it has a time that is counted from now', async () => {
    await addJob(database.client, { kind: 'x'.repeat(190) });
    const dashboard = dashboardFor();
    const time = 'after:2h before:30s';
    const q = `${time} payload.a:${'x'.repeat(1_990 - time.length - 11)}`;
    const html = await page(dashboard, many({ action: 'cancel', of: 'all', q }));
    expect(textOf(html)).toContain('No matching jobs');
    await database.client`
      update queue_jobs set created_at = now() - interval '1 h',
        payload = jsonb_build_object('a', repeat('x', ${1_990 - time.length - 11}))`;
    const asked = await page(dashboardFor(), many({ action: 'cancel', of: 'all', q }));
    const location = await press(dashboard, asked);
    expect(location).toMatch(/n=1$/);
    // The times that were counted from now are written out there.
    const back = textOf(await page(dashboard, location));
    expect(back).toContain('1 job is cancelled');
    expect(back).not.toContain('longer than');
    expect(back).toContain('cancelled in the dashboard by ann');
  });

  test('the longest filter fits into the form, whatever it is written in', async () => {
    const title = '請'.repeat(1_980);
    await addJob(database.client, { payload: { title } });
    const dashboard = dashboardFor();
    const q = `payload.title:${title}`;
    const html = await page(dashboard, many({ action: 'cancel', of: 'all', q }));
    expect(textOf(html)).toContain('1 job matches');
    const answer = await press(dashboard, html);
    expect(answer).toBe(`/jobs?${new URLSearchParams({ q, done: 'cancelled-many', n: '1' })}`);
  });
});

describe('all that match a filter', () => {
  test('are redriven by what is in their payloads, exactly so many', async () => {
    for (let n = 0; n < 6; n++)
      await addJob(database.client, { kind: 'send-receipt', payload: { shop: n % 2 } });
    await endJob(database.db, { state: 'discarded', limit: 6 });
    const dashboard = dashboardFor();
    const html = await page(dashboard, many({ action: 'redrive', of: 'all', q: 'payload.shop:1' }));
    expect(textOf(html)).toContain('3 jobs match');
    expect(textOf(html)).toContain('payload.shop:1');
    const answers = await Promise.all([press(dashboard, html), press(dashboard, html)]);
    // Two operators at once: each job is put back once, and each of the two hears how many were theirs.
    const counts = answers.map((location) => Number(new URLSearchParams(location.split('?')[1]).get('n')));
    expect((counts[0] ?? 0) + (counts[1] ?? 0)).toBe(3);
    expect((await queue.list(database.db, { state: 'due' })).jobs).toHaveLength(3);
    expect(done).toMatchObject([{ target: { filter: 'payload.shop:1' } }, { action: 'redrive' }]);
  });

  test('what is selected among cancelled ones is put back, and a time in a filter stays what it was', async () => {
    const [a, b] = await addJobs(database.client, [{}, {}]);
    await queue.cancelMany(database.db, { all: true });
    const dashboard = dashboardFor();
    const query = { action: 'redrive', of: 'selected', id: String(a) };
    expect(textOf(await page(dashboard, many({ ...query, q: '' })))).toContain('No matching jobs');
    const html = await page(dashboard, many({ ...query, q: 'state:cancelled before:1h' }));
    expect(await press(dashboard, html)).toMatch(/done=redriven&n=1$/);
    expect(await Promise.all([a, b].map(stateOf))).toEqual(['due', 'cancelled']);
    const [form] = formsOf(await page(dashboard, many({ action: 'cancel', of: 'all', q: 'k after:2h' })));
    expect(form?.fields.q).toMatch(/^k after:\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect(
      await press(dashboard, await page(dashboard, many({ action: 'cancel', of: 'all', q: 'k after:2h' }))),
    ).toMatch(/n=1$/);
  });

  test('what an error has ended after a batch is told of, and goes on', async () => {
    await fillJobs(database.client, 1_500);
    await database.client.unsafe(`
      create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no' using errcode = '53200'; end $$;
      create trigger refuse before delete on queue_jobs for each row when (old.payload = '"last"') execute function refuse()`);
    const last = await addJob(database.client, { payload: 'last' });
    const dashboard = dashboardFor();
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    const fields = { of: 'all', q: '', until: '9007199254740991' };
    const answer = await post(dashboard, '/actions/cancel-many', fields);
    expect(textOf(await answer.text())).toContain('1,000 jobs are done, more are left');
    expect(done).toMatchObject([{ outcome: '1000 cancelled' }]);
    const again = await post(dashboard, '/actions/cancel-many', { ...fields, after: String(last - 1) });
    expect(again.status).toBe(500);
    printed.mockRestore();
    await database.client.unsafe('drop trigger refuse on queue_jobs; drop function refuse()');
  });

  test.each([
    ['cancel', 'delete on queue_jobs', 'old.id'],
    ['redrive', 'delete on queue_results', 'old.job_id'],
    ['run-now', 'update on queue_jobs', 'old.id'],
  ] as const)(
    '%s leaves a job that the database refuses to change, and that alone',
    async (action, on, id) => {
      const rows = [{}, { queue: 'x' }, {}, { queue: 'x' }, {}];
      const dueInMs = action === 'redrive' ? 0 : 60_000;
      const ids = await addJobs(
        database.client,
        rows.map((row) => ({ ...row, dueInMs, kind: 'send-receipt' })),
      );
      if (action === 'redrive') {
        await endJob(database.db, { state: 'discarded', limit: 3 });
        await endJob(database.db, { state: 'discarded', limit: 2, queue: 'x' });
      }
      await refuse(`before ${on} for each row when (${id} = ${ids[1]})`);
      const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
      const dashboard = dashboardFor();
      const html = await page(dashboard, many({ action, of: 'all', q: '' }));
      expect(await press(dashboard, html)).toMatch(/&n=4&left=1$/);
      expect(done).toMatchObject([{ outcome: expect.stringMatching(/^4 /) }]);
      expect(printed.mock.calls).toEqual([
        [
          `drizzle-queue dashboard: the database refused to change job ${ids[1]}:`,
          expect.objectContaining({ message: 'not this one' }),
        ],
      ]);
    },
  );

  test.each([
    ['cancel', 'delete on queue_jobs', 'old.id'],
    ['redrive', 'delete on queue_results', 'old.job_id'],
    ['run-now', 'update on queue_jobs', 'old.id'],
  ] as const)(
    '%s ends in time where many are refused, and the next request goes on behind them',
    async (action, on, id) => {
      const dueInMs = action === 'redrive' ? 0 : 60_000;
      const ids = await addJobs(
        database.client,
        Array.from({ length: 8 }, (_, n) => ({ dueInMs, kind: 'send-receipt', queue: n % 2 ? 'x' : 'q' })),
      );
      if (action === 'redrive') {
        for (const name of ['q', 'x'])
          await endJob(database.db, { state: 'discarded', limit: 4, queue: name });
      }
      const bad = [0, 1, 3, 4, 7].map((n) => ids[n]);
      await refuse(`before ${on} for each row when (${id} in (${bad}))`);
      const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
      const dashboard = dashboardFor();
      const [form] = formsOf(await page(dashboard, many({ action, of: 'all', q: '' })));
      hurry();
      const answer = await (await post(dashboard, String(form?.action), form?.fields ?? {})).text();
      expect(printed).toHaveBeenCalledTimes(1);
      expect(formsOf(answer)[0]?.fields).toMatchObject({ after: String(ids[0]), tried: '1', done: '0' });
      expect(await press(dashboard, answer)).toMatch(/&n=3&left=5$/);
      expect(done.map(({ outcome }) => Number.parseInt(outcome, 10)).reduce((a, b) => a + b, 0)).toBe(3);
      // Each job is named once, by the request that has tried it.
      expect(done[0]?.ids).toEqual([ids[0]]);
      expect(done.flatMap((action) => action.ids)).toEqual(ids);
    },
  );

  test('a locked job in front of those that come in the next request is among those that were left', async () => {
    const ids = await addJobs(
      database.client,
      Array.from({ length: 4 }, () => ({})),
    );
    await refuse(`before delete on queue_jobs for each row when (old.id <> ${ids[3]})`);
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const dashboard = dashboardFor();
    const html = await page(dashboard, many({ action: 'cancel', of: 'all', q: '' }));
    const [other] = await database.connect();
    const location = await other?.client.begin(async (tx) => {
      await tx`select from queue_jobs where id = ${Number(ids[0])} for update`;
      hurry();
      return await press(dashboard, html);
    });
    expect(location).toMatch(/&n=1&left=3$/);
  });

  test.each([
    ['a lock is held', '55P03'],
    ['one takes too long by itself', '57014'],
  ])('where %s, they are not refused: it fails, and leaves none of them for good', async (_, code) => {
    await addJobs(database.client, [{}, {}, {}]);
    await refuse('before delete on queue_jobs for each row', code);
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const dashboard = dashboardFor();
    const html = await page(dashboard, many({ action: 'cancel', of: 'all', q: '' }));
    const [form] = formsOf(html);
    expect((await post(dashboard, String(form?.action), form?.fields ?? {})).status).toBe(500);
    await unrefuse();
    expect(await press(dashboard, html)).toMatch(/n=3$/);
  });

  test('what each queue has committed is counted, where it is put back queue by queue', async () => {
    await addJobs(database.client, [{ kind: 'send-receipt' }, { kind: 'send-receipt', queue: 'x' }]);
    for (const name of ['q', 'x']) await endJob(database.db, { state: 'discarded', queue: name });
    // As on Citus.
    await database.client`
      insert into pg_extension select 1, 'citus', extowner, extnamespace, false, '0' from pg_extension limit 1`;
    onTestFinished(async () => {
      await database.client`delete from pg_extension where extname = 'citus'`;
    });
    await refuse(`before delete on queue_results for each row when (old.queue = 'x')`);
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const dashboard = dashboardFor();
    const html = await page(dashboard, many({ action: 'redrive', of: 'all', q: '' }));
    expect(await press(dashboard, html)).toMatch(/done=redriven&n=1&left=1$/);
    expect(done).toMatchObject([{ outcome: '1 redriven' }]);
  });

  test('a job that was told to stop is counted where its worker cannot be notified', async () => {
    const [id = 0] = await addJobs(database.client, [{ workerId: 4 }]);
    const dashboard = dashboardFor();
    const [form] = formsOf(await page(dashboard, many({ action: 'cancel', of: 'all', q: 'state:running' })));
    vi.spyOn(console, 'error').mockImplementation(() => {});
    await database.client`alter function pg_catalog.pg_notify(text, text) rename to pg_notify_gone`;
    onTestFinished(async () => {
      vi.restoreAllMocks();
      await database.client`alter function pg_catalog.pg_notify_gone(text, text) rename to pg_notify`;
    });
    const answer = await post(dashboard, String(form?.action), form?.fields ?? {});
    expect(textOf(await answer.text())).toContain('1 of 1 job done');
    expect(done).toMatchObject([{ action: 'cancel', ids: [id], outcome: '1 cancelled' }]);
  });

  test('what was done in one queue before an error has ended it in the next is told of', async () => {
    const [first] = await addJobs(database.client, [{ dueInMs: 60_000 }, { queue: 'x', dueInMs: 60_000 }]);
    await refuse(`before update on queue_jobs for each row when (old.queue = 'x')`, '53200');
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const dashboard = dashboardFor();
    const html = await page(dashboard, many({ action: 'run-now', of: 'all', q: '' }));
    const [form] = formsOf(html);
    const answer = await post(dashboard, String(form?.action), form?.fields ?? {});
    expect(textOf(await answer.clone().text())).toContain('1 of 2 jobs done');
    expect(done).toMatchObject([{ action: 'runNow', outcome: '1 due now' }]);
    expect(await stateOf(Number(first))).toBe('due');
    const [next] = formsOf(await answer.text());
    expect((await post(dashboard, String(next?.action), next?.fields ?? {})).status).toBe(500);
    await unrefuse();
    const last = await post(dashboard, String(next?.action), next?.fields ?? {});
    expect(last.headers.get('location')).toMatch(/done=due-now&n=2$/);
  });

  test('what has failed while they were counted is not put back: it is not in their number', async () => {
    const [later, counted] = await addJobs(database.client, [
      { kind: 'send-receipt', priority: 9 },
      { kind: 'send-receipt' },
    ]);
    await endJob(database.db, { state: 'discarded' });
    const db = another(database.db);
    db.transaction = async (run, settings) =>
      await database.db.transaction(async (tx) => {
        const execute = tx.execute.bind(tx);
        let sent = 0;
        tx.execute = (async (query: Parameters<typeof execute>[0]) => {
          // The first statement has taken the snapshot.
          if (++sent === 2) {
            // A form has whole milliseconds.
            await database.client`select pg_sleep(0.01)`;
            await endJob(database.db, { state: 'discarded' });
          }
          return await execute(query);
        }) as unknown as typeof execute;
        return await run(tx);
      }, settings);
    const dashboard = createDashboard({ db, queue, authorize: () => ({ can: 'write' }) });
    const html = await page(dashboard, many({ action: 'redrive', of: 'all', q: '' }));
    expect(textOf(html)).toContain('1 job matches');
    expect(await press(dashboardFor(), html)).toMatch(/done=redriven&n=1&left=1$/);
    expect(await Promise.all([counted, later].map(stateOf))).toEqual(['due', 'discarded']);
  });

  test('what has failed again since the page is not put back by a form that is sent again', async () => {
    const fields = async () => {
      const html = await page(dashboardFor(), many({ action: 'redrive', of: 'all', q: '' }));
      return formsOf(html)[0]?.fields ?? {};
    };
    await addJob(database.client, { kind: 'send-receipt' });
    await endJob(database.db, { state: 'discarded' });
    const sent = await fields();
    const press = async () =>
      (await post(dashboardFor(), '/actions/redrive-many', sent)).headers.get('location');
    expect(await press()).toMatch(/done=redriven&n=1$/);
    await endJob(database.db, { state: 'discarded' });
    expect(await press()).toMatch(/done=redriven&n=0/);
    expect((await queue.list(database.db, { state: 'discarded' })).jobs).toHaveLength(1);
    expect(
      (await post(dashboardFor(), '/actions/redrive-many', await fields())).headers.get('location'),
    ).toMatch(/n=1$/);
  });

  test('thousands go by batches; what is enqueued after the page is not meant', async () => {
    await fillJobs(database.client, 2_500);
    const dashboard = dashboardFor();
    const html = await page(dashboard, many({ action: 'cancel', of: 'all', q: '' }));
    expect(textOf(html)).toMatch(/2,500 jobs match .*No filter is set/);
    const later = await addJob(database.client);
    expect(await press(dashboard, html)).toMatch(/done=cancelled-many&n=2500$/);
    expect(await stateOf(later)).toBe('due');
  });

  test.each(['cancel', 'run-now'])('%s: where counting took too long, too', async (action) => {
    await addJobs(database.client, [{ dueInMs: 60_000 }, { dueInMs: 60_000 }]);
    const dashboard = dashboardFor();
    const html = await uncounted(dashboard, many({ action, of: 'all', q: 'kind:k' }));
    expect(textOf(html)).toMatch(/\? jobs match .* so their number is unknown/);
    const later = await addJob(database.client, { dueInMs: 60_000 });
    expect(await press(dashboard, html)).toMatch(/n=2$/);
    expect(await stateOf(later)).toBe('scheduled');
  });

  test('nothing is asked where not even the last of them was found in time', async () => {
    await addJob(database.client);
    const html = await database.client.begin(async (tx) => {
      await tx`lock table queue_jobs in access exclusive mode`;
      return await page(dashboardFor(), many({ action: 'cancel', of: 'all', q: '' }));
    });
    expect(textOf(html)).toContain('The database took too long');
    expect(formsOf(html)).toEqual([]);
  });

  test('a request that has gone on for long says how far it is, and the next one goes on from there', async () => {
    await fillJobs(database.client, 30);
    const dashboard = dashboardFor();
    const [first] = (await queue.list(database.db, { limit: 20 })).jobs.slice(-1);
    const fields = { of: 'all', q: 'kind:k', until: '9007199254740991', after: String(first?.id) };
    const answer = await post(dashboard, '/actions/cancel-many', { ...fields, tried: '11', done: '10' });
    expect(answer.headers.get('location')).toBe('/?done=cancelled-many&n=29&left=1');
    expect((await queue.list(database.db, { state: 'due', limit: 100 })).jobs).toHaveLength(11);
    expect(textOf(await page(dashboard, '/jobs?done=cancelled-many&n=1&left=1'))).toContain(
      '1 job is cancelled, or told to stop. 1 skipped: the action does not apply, another user was faster, or the database refused it.',
    );
  });

  test('scheduled ones are due now, and waiting, running and due ones stay', async () => {
    const [later, due, running] = await addJobs(database.client, [
      { dueInMs: 60_000 },
      {},
      { workerId: 7, dueInMs: 60_000 },
    ]);
    const dashboard = dashboardFor();
    const html = await page(dashboard, many({ action: 'run-now', of: 'all', q: 'queue:q' }));
    expect(textOf(html)).toContain('1 job matches');
    expect(await press(dashboard, html)).toMatch(/done=due-now&n=1$/);
    expect(await Promise.all([later, due, running].map(stateOf))).toEqual(['due', 'due', 'running']);
  });

  test('by queue: nothing that a scope hides is touched', async () => {
    const [mine, others] = await addJobs(database.client, [{}, { queue: 'x' }]);
    const dashboard = dashboardFor({ authorize: () => ({ can: 'write', queues: ['q'] }) });
    for (const q of ['', 'queue:x', 'state:due', `id:${others}`]) {
      const text = textOf(await page(dashboard, many({ action: 'cancel', of: 'all', q })));
      expect(text, q).toMatch(q === '' || q === 'state:due' ? /1 job matches/ : /No matching jobs/);
    }
    const html = await page(dashboard, many({ action: 'cancel', of: 'all', q: '' }));
    expect(await press(dashboard, html)).toMatch(/n=1$/);
    const forged = { of: 'selected', ids: String(others), until: '9007199254740991' };
    expect((await post(dashboard, '/actions/cancel-many', forged)).headers.get('location')).toMatch(/n=0$/);
    expect(await Promise.all([mine, others].map(stateOf))).toEqual(['cancelled', 'due']);
  });
});

describe('a group of errors', () => {
  /** Discards jobs by the message that they failed with. */
  async function discard(count: number, message = 'no such order', at = 'statement_timestamp()') {
    await fillJobs(database.client, count);
    await database.client.unsafe(
      `with taken as (delete from queue_jobs where queue = 'q' and worker_id is null returning *)
       insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence, metadata, created_at, run_at, finished_at)
       select id, queue, kind, payload, 'discarded', jsonb_build_array(jsonb_build_object('attempt', 1, 'name', 'Error', 'message', $1::text)),
         1, max_attempts, priority, fence, metadata, created_at, run_at, ${at} from taken`,
      [message],
    );
  }

  const formOf = async (dashboard: Dashboard) =>
    formsOf(await page(dashboard, '/errors')).find(({ action }) => action.endsWith('/redrive-cause'));
  const counts = async () => {
    const [row] = await database.client<{ due: number; discarded: number }[]>`
      select (select count(*)::int from queue_jobs) as due, (select count(*)::int from queue_results) as discarded`;
    return { ...row };
  };
  afterEach(() => vi.restoreAllMocks());

  test('is redriven batch by batch, and each answer says how far it is', async () => {
    await discard(2_500);
    await discard(3, 'no such customer');
    const dashboard = dashboardFor();
    const form = await formOf(dashboard);
    hurry();
    const first = await post(dashboard, String(form?.action), form?.fields ?? {});
    const html = await first.text();
    expect(textOf(html)).toContain('1,000 of 2,500 jobs done');
    expect(html).toMatch(/<progress max="2500" value="1000"/);
    expect(await counts()).toEqual({ due: 1_000, discarded: 1_503 });
    const [next] = formsOf(html);
    const second = await (await post(dashboard, String(next?.action), next?.fields ?? {})).text();
    expect(textOf(second)).toContain('2,000 of 2,500 jobs done');
    expect(await press(dashboard, second)).toBe('/errors?done=redriven&n=2500');
    expect(await counts()).toEqual({ due: 2_500, discarded: 3 });
    expect(done.map(({ outcome }) => outcome)).toEqual(['1000 redriven', '1000 redriven', '500 redriven']);
  });

  test('puts no job back twice that has failed again meanwhile, however often a form is sent', async () => {
    await discard(1_200);
    const dashboard = dashboardFor();
    const form = await formOf(dashboard);
    hurry();
    const send = () => post(dashboard, String(form?.action), form?.fields ?? {});
    const [next] = formsOf(await (await send()).text());
    // The jobs of the first batch have run, and have failed as before.
    await database.client`
      with taken as (delete from queue_jobs returning *)
      insert into queue_results (job_id, queue, kind, payload, state, errors, attempt, max_attempts, priority, fence, metadata, created_at, run_at, finished_at)
      select id, queue, kind, payload, 'discarded', '[{"attempt": 1, "name": "Error", "message": "no such order"}]', 1,
        max_attempts, priority, fence, metadata, created_at, run_at, statement_timestamp() from taken`;
    const reloaded = await send();
    expect(reloaded.headers.get('location')).toBe('/errors?done=redriven&n=200');
    expect(await counts()).toEqual({ due: 200, discarded: 1_000 });
    const late = await post(dashboard, String(next?.action), next?.fields ?? {});
    expect(late.headers.get('location')).toMatch(/n=1000$/);
    expect(await counts()).toEqual({ due: 200, discarded: 1_000 });
  });

  test('leaves a job that the database refuses to put back, and that alone', async () => {
    await discard(5);
    const [one] = await database.client`select job_id from queue_results order by job_id offset 2 limit 1`;
    await refuse(`before delete on queue_results for each row when (old.job_id = ${one?.job_id})`);
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const dashboard = dashboardFor();
    const form = await formOf(dashboard);
    const answer = await post(dashboard, String(form?.action), form?.fields ?? {});
    expect(answer.headers.get('location')).toBe('/errors?done=redriven&n=4&left=1');
    expect(await counts()).toEqual({ due: 4, discarded: 1 });
  });

  test('says that they were skipped, not that none is left, where the database refuses all', async () => {
    await discard(3);
    await refuse('before delete on queue_results for each row');
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const dashboard = dashboardFor();
    const form = await formOf(dashboard);
    const answer = await post(dashboard, String(form?.action), form?.fields ?? {});
    expect(answer.headers.get('location')).toBe('/errors?done=redriven&n=0&left=3');
  });

  test('leaves the rest in their group where the page is closed, and two who press share them', async () => {
    await discard(1_500);
    const dashboard = dashboardFor();
    const form = await formOf(dashboard);
    hurry();
    await post(dashboard, String(form?.action), form?.fields ?? {});
    vi.restoreAllMocks();
    expect(textOf(await page(dashboard, '/errors'))).toMatch(/500 discarded jobs with 1 cause/);
    const back = await get(dashboard, '/actions/redrive-cause');
    expect([back.status, back.headers.get('location')]).toEqual([303, '/errors']);
    const rest = await formOf(dashboard);
    const answers = await Promise.all(
      [1, 2].map(() => post(dashboard, String(rest?.action), rest?.fields ?? {})),
    );
    const redriven = answers.map(({ headers }) =>
      Number(new URLSearchParams(headers.get('location')?.split('?')[1]).get('n')),
    );
    expect((redriven[0] ?? 0) + (redriven[1] ?? 0)).toBe(500);
    expect(await counts()).toEqual({ due: 1_500, discarded: 0 });
  });

  test('is what the page has counted: not what has failed since, nor what ended before the newest', async () => {
    await discard(3);
    const dashboard = dashboardFor();
    const form = await formOf(dashboard);
    await discard(2);
    const answer = await post(dashboard, String(form?.action), form?.fields ?? {});
    expect(answer.headers.get('location')).toBe('/errors?done=redriven&n=3');
    expect(await counts()).toEqual({ due: 3, discarded: 2 });
    const { asof: _, ...fields } = (await formOf(dashboard))?.fields ?? {};
    expect((await post(dashboard, '/actions/redrive-cause', fields)).headers.get('location')).toMatch(/n=2$/);
    for (const asof of ['x', '-1', '99999999999999999', '9007199254740991', '0'])
      expect((await post(dashboard, '/actions/redrive-cause', { ...fields, asof })).status).toBe(303);
  });

  test('that changes nothing but the time when it was looked at is no other page', async () => {
    await discard(3);
    const dashboard = dashboardFor();
    const first = await get(dashboard, '/errors');
    const etag = String(first.headers.get('etag'));
    const anew = dashboardFor();
    const again = await get(anew, '/errors', { 'if-none-match': etag });
    expect(again.status).toBe(304);
  });
});

describe('the jobs page', () => {
  test('has boxes and buttons for what one may do, and none for who may only read', async () => {
    await addJob(database.client);
    const html = await page(dashboardFor(), '/jobs?q=state%3Adue');
    expect(html).toMatch(/<form method="get" action="\/jobs\/many" class="choose">/);
    expect(textOf(html)).toMatch(/selected all that match this filter Cancel…/);
    expect(textOf(html)).not.toContain('Redrive…');
    const some = dashboardFor({ authorize: () => ({ can: { redrive: true } }) });
    expect(textOf(await page(some, '/jobs'))).toMatch(/all jobs Redrive…/);
    const read = await page(dashboardFor({ authorize: () => 'read' }), '/jobs');
    expect(read).not.toContain('type="checkbox"');
    expect((await get(dashboardFor({ authorize: () => 'none' }), many({ action: 'cancel' }))).status).toBe(
      403,
    );
    const reading = dashboardFor({ authorize: () => 'read' });
    expect(textOf(await page(reading, many({ action: 'cancel', of: 'all', q: '' })))).toContain('No job is');
  });

  test('completes keys and values of the newest payloads, of one kind or of all, in the scope', async () => {
    await addJobs(database.client, [
      { payload: { orderId: 42, note: 'two words', 'a b': 1, deep: { secret: 1 }, long: 'x'.repeat(100) } },
      { kind: 'other', payload: { only: 'here' } },
      { queue: 'x', payload: { hidden: 1 } },
      { payload: [1] },
      { payload: 7 },
    ]);
    const options = (html: string) =>
      [...html.matchAll(/<option value="([^"]*payload[^"]*)"/g)].map(([, value]) => value);
    const dashboard = dashboardFor({ authorize: () => ({ queues: ['q'] }) });
    expect(options(await page(dashboard, '/jobs'))).toEqual([
      'payload.note:&quot;two words&quot;',
      'payload.only:here',
      'payload.orderId:42',
    ]);
    expect(options(await page(dashboard, '/jobs?q=kind%3Ak+payload.note%3Ax'))).toEqual([
      'kind:k payload.note:x payload.orderId:42',
    ]);
    const redacted = dashboardFor({ show: ({ text }) => text });
    expect(options(await page(redacted, '/jobs'))).toEqual([]);
  });
});

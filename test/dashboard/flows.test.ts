import {
  createQueue,
  defineJob,
  defineSignal,
  drain,
  fail,
  handlersFor,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import { createDashboard, type DashboardAccess, type ShownField } from 'drizzle-queue/dashboard';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { layoutOf, NODE } from '../../src/entries/dashboard/flow-layout.ts';
import { clearTables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { another, formsOf, get, page, post, textOf } from './support/visits.ts';

const database = useTestDatabase();
const queue = createQueue({ workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const first = defineJob('first', { payload: unvalidated<number>(), queue: 'q' });
const part = defineJob('part <b>', { payload: unvalidated<number>(), queue: 'q', maxAttempts: 1 });
const done: unknown[] = [];

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
  done.length = 0;
});

function dashboardFor(access: DashboardAccess = { can: 'write' }) {
  return createDashboard({
    db: another(database.db),
    queue,
    authorize: () => access,
    onAction: ({ action, target, ids, outcome }) => {
      done.push({ action, target, ids, outcome });
    },
  });
}

const flowOf = async (parts: number) =>
  await queue.workflows.enqueueFlow(database.db, (flow) => {
    const before = flow.add(first, 0);
    for (let at = 0; at < parts; at++) flow.add(part, at, { after: [before] });
  });

let isFixed = false;
const run = async () =>
  await drain(database.db, {
    queue,
    handlers: [
      handle(first, async () => undefined),
      handle(part, async ({ payload }) => (payload === 1 && !isFixed ? fail('no page') : undefined)),
    ],
    deadlineMs: 20_000,
    log: false,
  });

test('a flow is a graph of boxes, and a box of many jobs opens to a list', async () => {
  isFixed = false;
  const { id, jobIds } = await flowOf(60);
  await run();
  const dashboard = dashboardFor();
  expect(await page(dashboard, `/jobs/${jobIds[1]}`)).toContain(`href="/flows/${id}"`);
  const html = await page(dashboard, `/flows/${id}`);
  expect(html).not.toContain('part <b>');
  expect(textOf(html)).toContain('part <b> × 60: 59 completed, 1 discarded; after first');
  expect(textOf(html)).toContain('ended, 1 failed');
  const [, href = ''] = /<a href="(\/flows\/\d+\?group=[^"]+)#jobs"/.exec(html) ?? [];
  const list = await page(dashboard, href);
  expect(list.match(/<tr id="job-/g)).toHaveLength(50);
  const [, more = ''] = /<a rel="next" href="([^"]+)#jobs"/.exec(list) ?? [];
  const rest = await page(dashboard, more.replaceAll('&amp;', '&'));
  expect(rest.match(/<tr id="job-/g)).toHaveLength(10);
  expect((await page(dashboard, `${href}&state=discarded`)).match(/<tr id="job-/g)).toHaveLength(1);
});

test('a flow is redriven and cancelled by who may, and each is told', async () => {
  isFixed = false;
  const { id, jobIds } = await flowOf(3);
  await run();
  const dashboard = dashboardFor();
  const [redrive] = formsOf(await page(dashboard, `/flows/${id}`));
  expect(redrive).toMatchObject({ action: '/actions/redrive-flow', fields: { id: String(id) } });
  const answer = await post(dashboard, '/actions/redrive-flow', redrive?.fields ?? {});
  expect(answer.headers.get('location')).toBe(`/flows/${id}?done=flow-redriven&n=1`);
  expect((await queue.find(database.db, Number(jobIds[2])))?.state).toBe('due');
  expect((await post(dashboard, '/actions/cancel-flow', { id: String(id), back: '/' })).status).toBe(303);
  const [told] = await database.client`
    select count(*)::int as batches from queue_tallies where cancel_reason is not null`;
  expect(told).toEqual({ batches: 1 });
  expect(done).toEqual([
    { action: 'redrive', target: { flow: String(id) }, ids: [], outcome: '1 redriven' },
    { action: 'cancel', target: { flow: String(id) }, ids: [], outcome: 'cancelled' },
  ]);
});

test('jobs that wait are no quiet, and a job of a flow says what it waits for', async () => {
  const { jobIds } = await flowOf(2);
  const [before = 0, after = 0] = jobIds.map(Number);
  // Its own signal is all that is left of it.
  await database.client`update queue_jobs set run_at = 'infinity', blockers = 0 where id = ${before}`;
  const dashboard = dashboardFor();
  const overview = textOf(await page(dashboard, '/'));
  expect(overview).not.toContain('All quiet');
  expect(overview).toMatch(/q 0 0 0 3 – 0/);
  expect(textOf(await page(dashboard, '/queues'))).toMatch(/part <b> q 0 0 0 2 –/);
  const facts = textOf(await page(dashboard, `/jobs/${after}`));
  expect(facts).toContain('Waits for the jobs before it in its flow');
  expect(facts).not.toContain('Due since');
});

test('flows are listed with where they stand, and a state lists its own', async () => {
  isFixed = false;
  const failed = await flowOf(3);
  await run();
  const open = await flowOf(3);
  const dashboard = dashboardFor({});
  const all = await page(dashboard, '/flows');
  expect(all).toContain(`<a href="/flows" aria-current="page">Flows</a>`);
  expect([...all.matchAll(/<tr id="flow-(\d+)"/g)].map(([, id]) => Number(id))).toEqual([open.id, failed.id]);
  expect(textOf(all)).toContain('ended, 1 failed');
  expect(all).toContain(`href="/flows/${failed.id}"`);
  const [, link = ''] = /<a href="([^"]+)"[^>]*>failed<\/a>/.exec(all) ?? [];
  const some = await page(dashboard, link);
  expect([...some.matchAll(/<tr id="flow-(\d+)"/g)].map(([, id]) => Number(id))).toEqual([failed.id]);
  expect(textOf(await page(dashboard, '/flows?state=completed'))).toContain('There are none.');
});

test('without flows the list says how to enqueue one', async () => {
  expect(textOf(await page(dashboardFor(), '/flows'))).toContain('No flow yet');
});

test('a long list of flows has pages', async () => {
  for (let n = 0; n < 51; n++) await flowOf(0);
  const dashboard = dashboardFor();
  const first = await page(dashboard, '/flows');
  expect(first.match(/<tr id="flow-/g)).toHaveLength(50);
  const [, more = ''] = /<a rel="next" href="([^"]+)"/.exec(first) ?? [];
  const second = await page(dashboard, more.replaceAll('&amp;', '&'));
  expect(second.match(/<tr id="flow-/g)).toHaveLength(1);
  expect(second).not.toContain('rel="next"');
});

test('who sees some jobs has no list of flows', async () => {
  const dashboard = dashboardFor({ queues: ['q'] });
  expect((await get(dashboard, '/flows')).status).toBe(404);
  expect(await page(dashboard, '/')).not.toContain('>Flows</a>');
});

test.each([
  ['may only read', {}, 403],
  ['has a scope', { can: 'write', queues: ['q'] }, 404],
] as const)('a viewer who %s sees it and has no buttons', async (_, access, status) => {
  const { id } = await flowOf(2);
  const dashboard = dashboardFor(access);
  const html = await page(dashboard, `/flows/${id}`);
  expect(formsOf(html)).toEqual([]);
  for (const name of ['cancel-flow', 'redrive-flow'])
    expect((await post(dashboard, `/actions/${name}`, { id: String(id), back: '/' })).status).toBe(status);
  expect(done).toEqual([]);
});

test('why a flow was cancelled is shown as `show` says, and to nobody with a scope', async () => {
  const { id } = await flowOf(2);
  // As a worker writes it, when it adds up what it was told of the flow.
  await database.client`update queue_batches set cancel_reason = 'secret reason' where id = ${id}`;
  const seen = async (access: DashboardAccess, show?: (field: ShownField) => string | null) => {
    const options = { db: another(database.db), queue, authorize: () => access };
    return textOf(await page(createDashboard({ ...options, ...(show && { show }) }), `/flows/${id}`));
  };
  expect(await seen({})).toContain('Its jobs are being ended: secret reason');
  const asked: ShownField[] = [];
  const hidden = await seen({}, (field) => {
    asked.push(field);
    return field.field === 'error' ? null : field.text;
  });
  expect(hidden).toMatch(/Its jobs are being ended: +hidden/);
  expect(hidden).not.toContain('secret');
  expect(asked).toContainEqual(expect.objectContaining({ field: 'error', job: undefined }));
  const scoped = await seen({ queues: ['q'] });
  expect(scoped).toContain('Its jobs are being ended.');
  expect(scoped).not.toContain('secret');
});

test.each(['999999', '99999999999999999999', '0'])('there is no flow %s', async (id) => {
  expect((await get(dashboardFor(), `/flows/${id}`)).status).toBe(404);
});

test('of a scope without its jobs a flow does not exist', async () => {
  const { id } = await flowOf(2);
  expect((await get(dashboardFor({ queues: ['other'] }), `/flows/${id}`)).status).toBe(404);
});

test('a discarded job does a step again, and all after it', async () => {
  const steps = defineJob('steps', { payload: unvalidated<number>(), queue: 'q', maxAttempts: 1 });
  const ran: string[] = [];
  let isBroken = true;
  const { id } = await queue.enqueue(database.db, steps, 1);
  const again = async () =>
    await drain(database.db, {
      queue,
      handlers: [
        handle(steps, async ({ step }) => {
          for (const name of ['a', 'b', 'c']) await step.run(name, () => void ran.push(name));
          if (isBroken) throw new Error('broken');
        }),
      ],
      deadlineMs: 20_000,
      log: false,
    });
  await again();
  isBroken = false;
  const dashboard = dashboardFor();
  const form = formsOf(await page(dashboard, `/jobs/${id}`)).find(({ fields }) => fields.step === 'b');
  expect(form?.action).toBe('/actions/redrive-from');
  expect((await post(dashboard, '/actions/redrive-from', form?.fields ?? {})).status).toBe(303);
  await again();
  expect(ran).toEqual(['a', 'b', 'c', 'b', 'c']);
  expect((await queue.find(database.db, id))?.state).toBe('completed');
  expect(done).toMatchObject([
    { action: 'redrive', ids: [id], target: { step: 'b' }, outcome: '1 redriven' },
  ]);
});

/** A job of which one step is done, in a state. */
async function steppedIn(state: string): Promise<number> {
  const job = defineJob('steps', { payload: unvalidated<number>(), queue: 'q', maxAttempts: 1 });
  const { id } = await queue.enqueue(database.db, job, 1);
  const handler = handle(job, async ({ step }) => {
    await step.run('a', () => 1);
    if (state === 'discarded') return fail('broken');
    if (state === 'scheduled') await step.sleep('night', 3_600_000);
    if (state !== 'completed') await step.waitForSignal(defineSignal('never'));
  });
  await drain(database.db, { queue, handlers: [handler], deadlineMs: 20_000, log: false });
  if (state === 'cancelled') await queue.cancel(database.db, id);
  if (state === 'running') await database.client`update queue_jobs set worker_id = 7, claimed_at = now()`;
  expect((await queue.find(database.db, id))?.state).toBe(state);
  return id;
}

/** What can be done from the first step on. */
async function fromHere(dashboard: ReturnType<typeof dashboardFor>, id: number): Promise<string[]> {
  const forms = formsOf(await page(dashboard, `/jobs/${id}`));
  return forms.flatMap(({ action, fields }) => (fields.step === 'a' ? action.replace('/actions/', '') : []));
}

test.each([
  ['discarded', ['redrive-from', 'fork']],
  ['cancelled', ['redrive-from', 'fork']],
  ['waiting', ['redrive-from', 'fork']],
  ['scheduled', ['redrive-from', 'fork']],
  ['running', ['fork']],
  ['completed', ['fork']],
])('from a step of a %s job one can %j', async (state, offered) => {
  const id = await steppedIn(state);
  expect(await fromHere(dashboardFor(), id)).toEqual(offered);
  expect(await fromHere(dashboardFor({ can: { redrive: true } }), id)).toEqual(
    offered.filter((each) => each !== 'fork'),
  );
  expect(await fromHere(dashboardFor({ can: { fork: true } }), id)).toEqual(['fork']);
  expect(await fromHere(dashboardFor({}), id)).toEqual([]);
});

test('from a job that is to end, or whose payload is gone, only what is left is offered', async () => {
  const ending = await steppedIn('waiting');
  await database.client`update queue_jobs set cancel_reason = 'no longer wanted'`;
  expect(await fromHere(dashboardFor(), ending)).toEqual(['fork']);
  const done = await steppedIn('discarded');
  await database.client`update queue_results set payload = null`;
  expect(await fromHere(dashboardFor(), done)).toEqual(['redrive-from']);
});

test.each(['waiting', 'scheduled', 'cancelled'])('a %s job does a step again', async (state) => {
  const id = await steppedIn(state);
  const form = { id: String(id), step: 'a', back: `/jobs/${id}` };
  const answer = await post(dashboardFor(), '/actions/redrive-from', form);
  expect(answer.headers.get('location')).toBe(`/jobs/${id}?done=redriven&n=1`);
  expect((await queue.find(database.db, id))?.state).toBe('due');
  expect(await queue.workflows.steps(database.db, id)).toEqual([]);
});

test('a fork leads to the new job, which has the steps before, and each is told', async () => {
  const id = await steppedIn('waiting');
  const dashboard = dashboardFor();
  const form = { id: String(id), step: 'never', back: `/jobs/${id}` };
  const answer = await post(dashboard, '/actions/fork', form);
  const [, forked = ''] = /^\/jobs\/(\d+)\?done=forked&n=1$/.exec(answer.headers.get('location') ?? '') ?? [];
  const job = await queue.find(database.db, Number(forked));
  expect(job).toMatchObject({ state: 'due', payload: 1, metadata: { forkedFrom: id } });
  expect(await queue.workflows.steps(database.db, Number(forked))).toMatchObject([{ name: 'a', output: 1 }]);
  expect((await queue.find(database.db, id))?.state).toBe('waiting');
  expect(textOf(await page(dashboard, `/jobs/${forked}?done=forked&n=1`))).toContain(
    'This is the new job. Steps taken over: 1.',
  );
  expect(done).toEqual([
    { action: 'fork', ids: [id], target: { step: 'never' }, outcome: `forked as ${forked}` },
  ]);
});

test('a fork that cannot be says why', async () => {
  const dashboard = dashboardFor();
  const id = await steppedIn('completed');
  const fork = async (step: string) =>
    (await post(dashboard, '/actions/fork', { id: String(id), step, back: '/' })).headers.get('location');
  expect(await fork('b')).toBe('/?done=no-step');
  await database.client`update queue_results set payload = null`;
  expect(await fork('a')).toBe('/?done=no-payload');
  expect(textOf(await page(dashboard, '/?done=no-payload'))).toContain('The payload of the job is not kept');
  expect(await database.client`select from queue_jobs`).toHaveLength(0);
  expect(done.map((each) => Object(each).outcome)).toEqual(['step not found', 'payload not kept']);
  const scoped = dashboardFor({ can: 'write', queues: ['other'] });
  expect((await post(scoped, '/actions/fork', { id: String(id), step: 'a' })).status).toBe(404);
});

test('a step is redriven whatever its name, and who comes second is told why nothing was done', async () => {
  const job = defineJob('steps', { payload: unvalidated<number>(), queue: 'q', maxAttempts: 1 });
  const { id } = await queue.enqueue(database.db, job, 1);
  const long = 'é'.repeat(100);
  await drain(database.db, {
    queue,
    handlers: [
      handle(job, async ({ step }) => {
        await step.run(long, { undo: () => {} }, () => 1);
        await step.undoAll(new Error('broken'));
        return fail('broken');
      }),
    ],
    deadlineMs: 20_000,
    log: false,
  });
  const dashboard = dashboardFor();
  // As a wait for a child is called.
  await database.client`update queue_steps set name = name || ': end' where name = ${long}`;
  const steps = formsOf(await page(dashboard, `/jobs/${id}`)).flatMap(({ fields }) => fields.step ?? []);
  expect(steps).toEqual([`${long}: end`, `${long}: end`]); // A job cannot go on from an undo.
  const form = { id: String(id), step: `${long}: end`, back: '/' };
  const first = await post(dashboard, '/actions/redrive-from', form);
  expect(first.headers.get('location')).toBe('/?done=redriven&n=1');
  for (const step of [form.step, `undo:${long}`]) {
    const second = await post(dashboard, '/actions/redrive-from', { ...form, step });
    expect(second.headers.get('location')).toBe('/?done=no-step');
  }
  expect(textOf(await page(dashboard, '/?done=no-step'))).toContain('The job has no such step');
  const plain = await post(dashboard, '/actions/redrive', { id: String(id), back: '/' });
  expect(plain.headers.get('location')).toBe('/?done=not-discarded&n=0');
});

test('what is told of a redriven step hides its name where its job does', async () => {
  const steps = defineJob('steps', { payload: unvalidated<number>(), queue: 'q', maxAttempts: 1 });
  const { id } = await queue.enqueue(database.db, steps, 1);
  const handler = handle(steps, async ({ step }) => {
    await step.run('pay Ada', () => 1);
    return fail('broken');
  });
  await drain(database.db, { queue, handlers: [handler], deadlineMs: 20_000, log: false });
  const dashboard = createDashboard({
    db: another(database.db),
    queue,
    authorize: () => 'write',
    show: ({ field, job, text }) => (field === 'step' && job?.kind === 'steps' ? null : text),
    onAction: ({ target, outcome }) => {
      done.push({ target, outcome });
    },
  });
  await post(dashboard, '/actions/redrive-from', { id: String(id), step: 'pay Ada', back: '/' });
  expect(done).toEqual([{ target: { step: 'hidden' }, outcome: '1 redriven' }]);
});

test('boxes stand right of what is before them, and none upon another', () => {
  const nodes = Array.from({ length: 500 }, (_, at) => ({
    key: String(at),
    after: at < 20 ? [] : [at - 20, at - 7 - (at % 5)].filter((each) => each >= 0).map(String),
  }));
  const { places, width, height } = layoutOf(nodes);
  expect(new Set([...places.values()].map(({ x, y }) => `${x} ${y}`)).size).toBe(500);
  for (const { key, after } of nodes) {
    const { x = -1, y = -1 } = places.get(key) ?? {};
    for (const before of after) expect(places.get(before)?.x).toBeLessThan(x);
    expect(x + NODE.width).toBeLessThanOrEqual(width);
    expect(y + NODE.height).toBeLessThanOrEqual(height);
  }
});

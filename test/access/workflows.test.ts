import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  drain,
  handlersFor,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import { createDashboard } from 'drizzle-queue/dashboard';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { expectDenied } from './denied.ts';
import { pageBlocks, type RoleName, useRoles } from './use-roles.ts';

const database = useTestDatabase();
const roles = useRoles(database, ['grant ']);
const queue = createQueue({ workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const work = defineJob('work', { output: unvalidated<unknown>() });
const answer = defineSignal('answer', unvalidated<number>());

beforeAll(async () => {
  await addWorkflowTables(database);
  for (const code of pageBlocks(['grant '], 'workflows')) await roles.run(code);
});

function workerAs(role: RoleName) {
  const handlers = [
    handle(work, async ({ step }) => {
      const one = await step.run('one', () => 1);
      return [one, await step.waitForSignal(answer)];
    }),
  ];
  const worker = createWorker(roles.as(role).db, { queue, log: false, handlers });
  onTestFinished(() => worker.stop());
  return worker;
}

test('the granted rights are enough to work, to send signals and to read steps', async () => {
  const web = roles.as('app_web').db;
  const worker = workerAs('app_worker');
  const problems: unknown[] = [];
  worker.on('error', ({ error }) => problems.push(error));
  const waiting = new Promise((resolve) => worker.on('waiting', resolve));
  const completed = new Promise((resolve) => worker.on('completed', resolve));
  await worker.start();
  const { id } = await queue.enqueue(web, work);
  await waiting;
  expect(await queue.workflows.signal(web, { id }, answer, 7)).toBe('sent');
  await completed;
  const reader = roles.as('app_reader').db;
  expect(await queue.find(reader, id)).toMatchObject({ output: [1, 7] });
  expect(await queue.workflows.steps(reader, id)).toHaveLength(2);
  expect(await queue.workflows.mailboxes(reader, id)).toMatchObject([{ sent: 1, received: 1 }]);
  const dashboard = createDashboard({ db: reader, queue, authorize: () => 'read' });
  const page = await dashboard(new Request(`http://shop.test/jobs/${id}`));
  expect(page.status).toBe(200);
  expect(await page.text()).toContain('id="step-2"');
  expect(problems).toEqual([]);
  await expectDenied(queue.workflows.fork(reader, id, { from: 'one' }));
  await expectDenied(queue.workflows.steps(web, id));
});

test('the granted rights are enough for flows and children, and to cancel them', async () => {
  const web = roles.as('app_web').db;
  const { workflows } = queue;
  const child = defineJob('child', { payload: unvalidated<number>(), output: unvalidated<number>() });
  const family = defineJob('family', { output: unvalidated<unknown>() });
  const worker = createWorker(roles.as('app_worker').db, {
    queue,
    log: false,
    handlers: [
      handle(child, ({ payload }) => payload + 1),
      handle(family, async ({ step }) => {
        const ones = await step.enqueueMany('ones', child, [{ payload: 1 }, { payload: 2 }]);
        return [await step.all('all', ones), await step.parents(child)];
      }),
    ],
  });
  onTestFinished(() => worker.stop());
  const problems: unknown[] = [];
  worker.on('error', ({ error }) => problems.push(error));
  await worker.start();
  const { id, jobIds } = await workflows.enqueueFlow(web, (flow) => {
    flow.add(family, undefined, { after: [flow.add(child, 5)] });
  });
  const reader = roles.as('app_reader').db;
  expect(await workflows.waitForFlow(reader, id)).toMatchObject({ total: 2, failed: 0 });
  expect(await queue.find(reader, family, Number(jobIds[1]))).toMatchObject({
    output: [[2, 3], [{ state: 'completed', output: 6 }]],
  });
  const later = await workflows.enqueueBatch(web, child, [{ payload: 1, delayMs: 3_600_000 }], {
    last: family,
  });
  const alone = await workflows.enqueueFlow(web, (flow) => {
    flow.add(child, 1, { delayMs: 3_600_000 });
  });
  expect(await queue.cancel(roles.as('app_admin').db, Number(alone.jobIds[0]))).toEqual({ cancelled: true });
  expect(await workflows.cancelFlow(web, later.id)).toBe(true);
  expect(await workflows.waitForFlow(reader, later.id)).toMatchObject({ failed: 1 });
  expect(await workflows.waitForFlow(reader, alone.id)).toMatchObject({ failed: 1 });
  expect(problems).toEqual([]);
});

test('the granted rights are enough to intervene, and a web app redeems tokens', async () => {
  const secured = createQueue({
    workflows: workflowsIn(workflowTables, { secrets: ['a secret of at least 32 bytes, for tests'] }),
  });
  const admin = roles.as('app_admin').db;
  const worker = roles.as('app_worker').db;
  let token = '';
  const handlers = [
    handle(work, async ({ step }) => {
      token = await step.token(answer);
      await step.run('one', () => 1);
      return await step.waitForSignal(answer);
    }),
  ];
  const { id } = await secured.enqueue(roles.as('app_web').db, work);
  const run = () => drain(worker, { queue: secured, handlers, log: false, deadlineMs: 20_000 });
  await run();
  expect(await secured.workflows.redeem(roles.as('app_web').db, answer, token, 7)).toBe('sent');
  await run();
  expect(await secured.find(admin, id)).toMatchObject({ state: 'completed', output: 7 });
  const forked = await secured.workflows.fork(admin, id, { from: 'answer' });
  await run();
  expect(await secured.workflows.redrive(admin, forked.id, { from: 'one' })).toBe('redriven');
  await run();
  expect(await secured.workflows.finish(admin, { job: work, id: forked.id }, 8)).toBe('finished');
  const flow = await secured.workflows.enqueueFlow(roles.as('app_web').db, (flow) => {
    flow.add(work, undefined, { after: [flow.add(work)] });
  });
  await secured.workflows.cancelFlow(admin, flow.id);
  expect(await secured.workflows.redriveFlow(admin, flow.id)).toBe(0);
  expect((await secured.find(admin, Number(flow.jobIds[0])))?.state).toBe('due');
});

test.each(['queue_steps', 'queue_mailboxes', 'queue_batches', 'queue_waits', 'queue_tallies'])(
  'a worker without a right on %s says so when it starts',
  async (table) => {
    await roles.run(`revoke delete on ${table} from app_worker`);
    await expect(workerAs('app_worker').start()).rejects.toThrow('grant delete on');
    await roles.run(`grant delete on ${table} to app_worker`);
  },
);

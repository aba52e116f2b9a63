import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
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
  await expectDenied(queue.workflows.forget(reader, id, { from: 'one' }));
  await expectDenied(queue.workflows.steps(web, id));
});

test.each(['queue_steps', 'queue_mailboxes'])(
  'a worker without a right on %s says so when it starts',
  async (table) => {
    await roles.run(`revoke delete on ${table} from app_worker`);
    await expect(workerAs('app_worker').start()).rejects.toThrow('grant delete on');
    await roles.run(`grant delete on ${table} to app_worker`);
  },
);

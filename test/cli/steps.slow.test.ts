import {
  createQueue,
  defineJob,
  defineSignal,
  drain,
  fixedBackoff,
  handlersFor,
  NonRetryableError,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, describe, expect, test } from 'vitest';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { useCli } from './support/build-cli.ts';
import { runCli } from './support/run-cli.ts';

const database = useTestDatabase();
const cli = useCli();
const queue = createQueue({ workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const fulfil = defineJob('fulfil', { payload: unvalidated<number>(), backoff: fixedBackoff(3_600_000) });
const later = defineJob('later');
const approval = defineSignal('approval', unvalidated<{ readonly by: string }>());
const reminder = defineSignal('reminder');

const env = () => ({ DATABASE_URL: database.url, SHOP_URL: database.url });
const config = (options: string) => ({
  'queue.config.mjs': `
    import { drizzle } from 'drizzle-orm/node-postgres';
    import pg from 'pg';
    import { createQueue, workflowsIn } from 'drizzle-queue';
    import { defineConfig } from 'drizzle-queue/config';
    import * as workflows from 'drizzle-queue/schema/workflows';
    export default defineConfig({
      db: drizzle(new pg.Pool({ connectionString: process.env.SHOP_URL })),
      ${options}
    });`,
});
const WITH = 'queue: createQueue({ workflows: workflowsIn(workflows) }),';

let bare: string;
let waiting: number;

async function show(cwd: string, id: number, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCli(cli.bin, ['show', String(id), ...args], { cwd, env: env() });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

async function run(handler: Parameters<typeof handle<typeof fulfil>>[1]): Promise<number> {
  const { id } = await queue.enqueue(database.db, fulfil, 7);
  await drain(database.db, { queue, handlers: [handle(fulfil, handler)], deadlineMs: 20_000 });
  return id;
}

beforeAll(async () => {
  bare = await cli.project();
});

describe('without the tables of workflows', () => {
  test('show says that there are no steps, and why', async () => {
    const { id } = await createQueue().enqueue(database.db, fulfil, 7);
    expect(await show(bare, id)).toMatch(/^ {2}steps +none: this database has no tables of workflows$/m);
    expect(JSON.parse(await show(bare, id, '--json'))).toMatchObject({
      job: { id },
      steps: null,
      mailboxes: null,
      flow: null,
    });
    const plain = await cli.project(config('queue: createQueue(),'));
    expect(await show(plain, id)).toMatch(
      /^ {2}steps +none: the queue of queue\.config\.ts has no workflows$/m,
    );
    const expecting = await cli.project(config(WITH));
    expect(await show(expecting, id)).toMatch(
      /^ {2}steps +unknown: the tables of 'drizzle-queue\/schema\/workflows' are missing/m,
    );
    await createQueue().cancel(database.db, id);
  });
});

describe('with them', () => {
  beforeAll(async () => {
    await addWorkflowTables(database);
    waiting = await run(async ({ step, job }) => {
      await step.run('charge', () => ({ id: 'ch_secret' }));
      await step.transaction('reserve', async () => undefined);
      await queue.workflows.signal(database.db, { id: job.id }, reminder);
      await Promise.all([step.waitForSignal(approval, { name: 'answer' }), step.sleep('late', 86_400_000)]);
    });
  });

  test('show prints the steps, what the job waits for, and what it has not received', async () => {
    const stdout = await show(bare, waiting);
    expect(stdout).toMatch(/^Job \d+ fulfil scheduled$/m);
    expect(stdout).toMatch(/^steps$/m);
    expect(stdout).toMatch(/^ {2}charge \(run\) done: took \d+ ms, began .* ago\n {4}\{"id":"ch_secret"\}$/m);
    expect(stdout).toMatch(/^ {2}reserve \(transaction\) done: took /m);
    expect(stdout).toMatch(/^ {2}answer \(signal\) waiting: began .* ago, signal 'approval'$/m);
    expect(stdout).toMatch(/^ {2}late \(sleep\) sleeping: began .* ago, until 20.*Z \(in 23 h\)$/m);
    expect(stdout).toMatch(/^signals that were not received\n {2}reminder: 1, .* ago$/m);
  });

  test('as JSON', async () => {
    const shown = JSON.parse(await show(bare, waiting, '--json'));
    expect(shown.steps).toHaveLength(4);
    const steps = new Map(shown.steps.map((step: { name: string }) => [step.name, step]));
    expect(steps.get('charge')).toMatchObject({ kind: 'run', output: { id: 'ch_secret' }, attempts: 1 });
    expect(steps.get('reserve')).not.toHaveProperty('output');
    expect(steps.get('answer')).toMatchObject({ signal: 'approval', until: null, endedAt: null });
    expect(shown.mailboxes).toMatchObject([
      { signal: 'approval', sent: 0, received: 0, waiting: true },
      { signal: 'reminder', sent: 1, received: 0, waiting: false },
    ]);
  });

  test('show prints why a step has failed, and one that is to be tried again', async () => {
    const failed = await run(async ({ step }) => {
      await step.run('pay', { attempts: 1 }, () => {
        throw new NonRetryableError('card declined');
      });
    });
    expect(await show(bare, failed)).toMatch(
      /^ {2}pay \(run\) failed for good: took .*\n {4}NonRetryableError: card declined$/m,
    );
    const again = await run(async ({ step }) => {
      await step.run('pay', { attempts: 3 }, () => {
        throw new Error('busy');
      });
    });
    expect(await show(bare, again)).toMatch(
      /^ {2}pay \(run\) to be tried again: began .*\n {4}Error: busy$/m,
    );
  });

  test('show of a job without steps says nothing of them', async () => {
    const { id } = await createQueue().enqueue(database.db, fulfil, 7);
    const stdout = await show(bare, id);
    expect(stdout).not.toMatch(/steps|received/);
    expect(JSON.parse(await show(bare, id, '--json'))).toMatchObject({
      steps: [],
      mailboxes: [],
      flow: null,
    });
    await createQueue().cancel(database.db, id);
  });

  test('show of queue.config.ts decides about names, outputs and errors of steps', async () => {
    const hides = await cli.project(config(`${WITH} dashboard: { show: () => null },`));
    const hidden = await show(hides, waiting);
    expect(hidden).not.toMatch(/secret|charge/);
    expect(hidden).toMatch(/^ {2}hidden \(run\) done: /m);
    const shown = JSON.parse(await show(hides, waiting, '--json'));
    expect(shown.steps[0]).toMatchObject({
      name: null,
      kind: 'run',
      output: null,
      hidden: ['name', 'output'],
    });
    const told: string = "({ field, step, text }) => (field === 'output' && step === 'charge' ? null : text)";
    const one = await cli.project(config(`${WITH} dashboard: { show: ${told} },`));
    expect(await show(one, waiting)).toMatch(/^ {2}charge \(run\) done: .*\n {4}hidden$/m);
  });

  test('show hides the ids of children with the output of their step', async () => {
    const parent = await run(async ({ step }) => {
      await step.enqueue('part', later, undefined, { delayMs: 3_600_000 });
      await step.waitForSignal(approval);
    });
    const [child] = (await queue.list(database.db, { kind: later.kind })).jobs;
    expect(await show(bare, parent)).toMatch(
      new RegExp(`part \\(enqueue\\) .*\\n.*"ids": ?\\[${child?.id}\\]`),
    );
    const hides = "({ field, text }) => (field === 'output' ? null : text)";
    const one = await cli.project(config(`${WITH} dashboard: { show: ${hides} },`));
    expect(await show(one, parent)).toMatch(/^ {2}part \(enqueue\) done: .*\n {4}hidden$/m);
    const shown = JSON.parse(await show(one, parent, '--json'));
    expect(shown.steps[0]).toMatchObject({ name: 'part', output: null, hidden: ['output'] });
  });
});

describe('from a step on', () => {
  /** A job that has charged, and ends or waits then. */
  const charged = (end: 'waits' | 'completes') =>
    run(async ({ step }) => {
      await step.run('charge', () => 1);
      if (end === 'waits') await step.waitForSignal(approval);
    });
  const command = async (...args: string[]) => await runCli(cli.bin, args, { cwd: bare, env: env() });

  test('redrive lets a job that waits go on', async () => {
    const id = await charged('waits');
    expect(await command('redrive', `${id}`, '--from', 'charge', '--dry-run')).toMatchObject({
      code: 0,
      stdout: `${id} waiting\n`,
    });
    expect(await queue.workflows.steps(database.db, id)).toHaveLength(2);
    expect(await command('redrive', `${id}`, '--from', 'approval')).toEqual({
      code: 0,
      stdout: `${id} redriven\n`,
      stderr: '',
    });
    expect(await queue.workflows.steps(database.db, id)).toMatchObject([{ name: 'charge' }]);
    expect((await queue.find(database.db, id))?.state).toBe('due');
    await queue.cancel(database.db, id);
    const again = await command('redrive', `${id}`, '--from', 'charge', '--json');
    expect(JSON.parse(again.stdout)).toEqual({
      version: 1,
      jobs: [{ id, done: true, outcome: 'redriven' }],
    });
    expect((await queue.find(database.db, id))?.state).toBe('due');
    await queue.cancel(database.db, id);
  });

  test('fork enqueues a new job, and leaves the other as it is', async () => {
    const id = await charged('completes');
    const { code, stdout, stderr } = await command('fork', `${id}`, '--from', 'charge');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [, first] = /^Enqueued job (\d+), which has 0 steps of job \d+\.$/m.exec(stdout) ?? [];
    const other = await charged('waits');
    const json = JSON.parse((await command('fork', `${other}`, '--from', 'approval', '--json')).stdout);
    expect(json).toEqual({ version: 1, id: expect.any(Number), forkedFrom: other, steps: 1 });
    expect(await queue.find(database.db, json.id)).toMatchObject({
      state: 'due',
      metadata: { forkedFrom: other },
    });
    expect((await queue.find(database.db, id))?.state).toBe('completed');
    expect((await queue.find(database.db, other))?.state).toBe('waiting');
    for (const each of [Number(first), json.id, other]) await queue.cancel(database.db, each);
  });

  test('what cannot be is told, with 1, and names of steps only where they are shown', async () => {
    const id = await charged('completes');
    expect(await command('redrive', `${id}`, '--from', 'charge')).toMatchObject({
      code: 1,
      stdout: `${id} not changed: completed\n`,
    });
    expect(await command('redrive', '999999', '--from', 'charge')).toMatchObject({
      code: 1,
      stdout: '999999 not changed: not-found\n',
    });
    expect(await command('fork', '999999', '--from', 'charge')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no job 999999'),
    });
    const waits = await charged('waits');
    expect(await command('redrive', `${waits}`, '--from', 'charg')).toEqual({
      code: 1,
      stdout: `${waits} not changed: no-step\n`,
      stderr: `Job ${waits} has no step 'charg'; it has recorded 'charge', 'approval'\n`,
    });
    const hides = await cli.project(config(`${WITH} dashboard: { show: () => null },`));
    const hidden = await runCli(cli.bin, ['fork', `${waits}`, '--from', 'x'], { cwd: hides, env: env() });
    expect(hidden).toMatchObject({ code: 1, stdout: '' });
    expect(hidden.stderr).toContain(`Job ${waits} has no step 'x'; it has recorded 'hidden', 'hidden'`);
    expect(hidden.stderr).not.toContain('charge');
    await queue.cancel(database.db, waits);
    const plain = await cli.project(config('queue: createQueue(),'));
    for (const name of ['fork', 'redrive']) {
      const args = [name, `${id}`, '--from', 'charge'];
      expect(await runCli(cli.bin, args, { cwd: plain, env: env() })).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('This queue has no workflows'),
      });
    }
  });

  test.each([
    [['redrive', '--from', 'charge'], '--from needs the ids of jobs'],
    [['redrive', '1', '--from', 'charge', '--state', 'cancelled'], '--from and --state cannot be combined'],
    [['fork', '1'], "required option '--from <step>' not specified"],
    [['fork', 'one', '--from', 'charge'], "'one' is not a job id"],
  ])('%j is refused with 2', async (args, why) => {
    expect(await command(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining(why) });
  });
});

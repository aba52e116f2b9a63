import {
  createQueue,
  defineJob,
  drain,
  handlersFor,
  NonRetryableError,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, expect, test } from 'vitest';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { useCli } from './support/build-cli.ts';
import { runCli } from './support/run-cli.ts';

const database = useTestDatabase();
const cli = useCli();
const queue = createQueue({ workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<typeof database.db, typeof queue>();
const read = defineJob('read', { payload: unvalidated<boolean>(), maxAttempts: 1 });
const report = defineJob('report', { payload: unvalidated<string>() });

let cwd: string;
const command = async (...args: string[]) =>
  await runCli(cli.bin, ['flows', ...args], { cwd, env: { DATABASE_URL: database.url } });

async function flowOf(...isGood: boolean[]) {
  return await queue.workflows.enqueueFlow(database.db, (flow) => {
    const pages = isGood.map((good) => flow.add(read, good));
    flow.add(report, 'r', { after: pages, onFailure: 'run' });
  });
}

beforeAll(async () => {
  cwd = await cli.project();
});

/** An app whose config decides what is shown. */
const config = (show: string) => ({
  'queue.config.mjs': `
    import { drizzle } from 'drizzle-orm/node-postgres';
    import pg from 'pg';
    import { createQueue, workflowsIn } from 'drizzle-queue';
    import { defineConfig } from 'drizzle-queue/config';
    import * as tables from 'drizzle-queue/schema/workflows';
    export default defineConfig({
      db: drizzle(new pg.Pool({ connectionString: process.env.DATABASE_URL })),
      queue: createQueue({ workflows: workflowsIn(tables) }),
      dashboard: { show: ${show} },
    });`,
});

test('without the tables of workflows it says what to write', async () => {
  expect(await command()).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('This queue has no workflows: createQueue({ workflows: '),
  });
});

test('flows are listed, shown, redriven and cancelled', async () => {
  await addWorkflowTables(database);
  expect(await command()).toMatchObject({ code: 0, stdout: 'No matching flows.\n' });
  const failed = await flowOf(true, false);
  await drain(database.db, {
    queue,
    handlers: [
      handle(read, async ({ payload }) => {
        if (!payload) throw new NonRetryableError('no page');
      }),
      handle(report, async () => undefined),
    ],
    deadlineMs: 60_000,
    log: false,
  });
  const open = await flowOf(true);
  const list = (await command()).stdout;
  expect(list).toMatch(/^ID +STATE +ENDED +FAILED +ENQUEUED +TOOK +KINDS$/m);
  expect(list).toMatch(new RegExp(`^ *${open.id} +open +0/2 +0 +.+ +– +read, report$`, 'm'));
  expect(list).toMatch(new RegExp(`^ *${failed.id} +failed +3/3 +1 +.+ +\\d.* +read, report$`, 'm'));
  expect(JSON.parse((await command('--state', 'failed', '--json')).stdout)).toMatchObject({
    ...{ flows: [{ id: failed.id, state: 'failed', failed: 1 }], nextCursor: null, truncated: false },
  });
  expect((await command('--limit', '1')).stdout).toContain(
    `There are more flows. Continue with --cursor ${open.id}`,
  );

  const shown = (await command('show', String(failed.id))).stdout;
  expect(shown).toMatch(/^Flow \d+: 3 of 3 jobs have ended, 1 failed$/m);
  expect(shown).toMatch(/^ {2}read × 2: 1 completed, 1 discarded$/m);
  expect(shown).toMatch(/^ {2}report: 1 completed; after read × 2, also when some fail$/m);
  const { flow } = JSON.parse((await command('show', String(failed.id), '--json')).stdout);
  expect(flow).toMatchObject({ id: failed.id, groups: [{ kind: 'read', jobs: 2 }, { kind: 'report' }] });
  expect(flow.groups[0]).not.toHaveProperty('batchId');

  const job = await runCli(cli.bin, ['show', String(failed.jobIds[0])], {
    cwd,
    env: { DATABASE_URL: database.url },
  });
  expect(job.stdout).toMatch(new RegExp(`^ {2}flow +${failed.id} \\(3 of 3 jobs have ended\\)$`, 'm'));

  expect((await command('redrive', String(failed.id))).stdout).toBe(`Put back 1 job of flow ${failed.id}.\n`);
  expect((await command('cancel', String(open.id))).stdout).toBe(`Flow ${open.id} is being cancelled.\n`);
  expect(await command('cancel', '999999')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('There is no flow 999999'),
  });
});

test('why a flow was cancelled is shown as dashboard.show says', async () => {
  const { id, jobIds } = await flowOf(true);
  // As a worker writes it, when it adds up what it was told of the flow.
  await database.client`update queue_batches set cancel_reason = 'secret reason' where id = ${id}`;
  const commands = [
    ['flows', 'show', String(id)],
    ['flows', 'show', String(id), '--json'],
    ['flows', '--json'],
    ['show', String(jobIds[0]), '--json'],
  ];
  const outputs = async (show: string) => {
    const [folder, env] = [await cli.project(config(show)), { DATABASE_URL: database.url }];
    return await Promise.all(
      commands.map(async (args) => (await runCli(cli.bin, args, { cwd: folder, env })).stdout),
    );
  };
  for (const stdout of await outputs('({ text }) => text')) expect(stdout).toContain('secret reason');
  for (const stdout of await outputs("({ field, text }) => (field === 'error' ? null : text)")) {
    expect(stdout).not.toContain('secret');
    expect(stdout).toContain('hidden');
  }
});

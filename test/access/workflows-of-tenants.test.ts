import { sql } from 'drizzle-orm';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  drain,
  handlersFor,
  type TransactionOf,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { sqlStateOf } from '../../src/core/sql/executor.ts';
import { clearTables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import { expectDenied } from './denied.ts';
import { pageBlocks, useRoles } from './use-roles.ts';

const database = useTestDatabase();
const roles = useRoles(database, ['grant ', 'create policy']);
const queue = createQueue({
  workflows: workflowsIn(workflowTables, { secrets: ['a secret of at least 32 bytes, for tests'] }),
});
const { workflows } = queue;
const { handle } = handlersFor<typeof database.db, typeof queue>();
const approval = defineSignal('approval', unvalidated<number>());
const leaf = defineJob('leaf', { output: unvalidated<number>() });
const work = defineJob('work', { output: unvalidated<unknown>() });
const last = defineJob('last', { output: unvalidated<unknown>() });

beforeAll(async () => {
  await addWorkflowTables(database);
  for (const code of pageBlocks(['grant ', 'create policy'], 'workflows')) await roles.run(code);
});
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
  tokens.clear();
});

type Tx = TransactionOf<Connection['db']>;
type Tenant = 'a' | 'b';

/** A transaction of a tenant, as the page shows it. */
function forTenant<T>(
  tenant: Tenant,
  role: 'app_web' | 'app_admin',
  run: (tx: Tx) => Promise<T>,
): Promise<T> {
  return roles.as(role).db.transaction(async (tx) => {
    await tx.execute(sql`select set_config('app.tenant', ${tenant}, true)`);
    return await run(tx);
  });
}

const of = (tenant: Tenant) => ({ metadata: { tenant } });
const tokens = new Map<number, string>();
const handlers = [
  handle(leaf, ({ job }) => job.id),
  // Waits for a signal, for one by a token, and for a child.
  handle(work, async ({ step, job }) => {
    const child = await step.enqueue('child', leaf, undefined, { metadata: job.metadata });
    tokens.set(job.id, await step.token(approval));
    const answers = [
      await step.waitForSignal(approval),
      await step.waitForSignal(approval, { name: 'next' }),
    ];
    return { answers, child: await step.waitForJob(child) };
  }),
  handle(last, async ({ step }) => (await step.parents(leaf)).map(({ state }) => state)),
];

/** Works off whatever is due, of all tenants. */
async function workOff(): Promise<void> {
  const worker = roles.as('app_worker').db;
  const { failed } = await drain(worker, { queue, handlers, log: false, deadlineMs: 20_000 });
  expect(failed).toBe(0);
}

/** A job of a tenant that waits for a signal, and has begun with its child. */
async function waitingJob(tenant: Tenant): Promise<number> {
  const { id } = await forTenant(tenant, 'app_web', (tx) => queue.enqueue(tx, work, undefined, of(tenant)));
  await workOff();
  return id;
}

const signal = (tenant: Tenant, id: number, value: number) =>
  forTenant(tenant, 'app_web', (tx) => workflows.signal(tx, { id }, approval, value));
const redeem = (tenant: Tenant, id: number, value: number) =>
  forTenant(tenant, 'app_web', (tx) => workflows.redeem(tx, approval, tokens.get(id), value));
const find = (tenant: Tenant, id: number) => forTenant(tenant, 'app_admin', (tx) => queue.find(tx, id));

describe('a tenant', () => {
  test('signals its own job, and redeems its token: that of another is gone, and hears nothing', async () => {
    const [own, other] = [await waitingJob('a'), await waitingJob('b')];
    expect(await signal('b', own, 8)).toBe('gone');
    expect(await redeem('b', own, 9)).toBe('gone');
    expect(await signal('a', own, 1)).toBe('sent');
    expect(await redeem('a', own, 2)).toBe('sent');
    expect(await redeem('a', own, 3)).toBe('duplicate');
    await workOff();
    expect(await find('a', own)).toMatchObject({ state: 'completed', output: { answers: [1, 2] } });
    expect(await find('b', own)).toBeUndefined();
    expect(await find('b', other)).toMatchObject({ state: 'waiting' });
  });

  test('can neither read nor write rows of another by statements of its own', async () => {
    const [own, other] = [await waitingJob('a'), await waitingJob('b')];
    await signal('a', own, 1);
    await signal('b', other, 2);
    const rows = (role: 'app_web' | 'app_admin', table: string, id: string) =>
      forTenant('a', role, async (tx) => {
        const found: Iterable<unknown> = await tx.execute(
          sql.raw(`select distinct ${id}::int from ${table}`),
        );
        return [...found];
      });
    expect(await rows('app_web', 'queue_mailboxes', 'job_id')).toEqual([{ job_id: own }]);
    expect(await rows('app_web', 'queue_waits', 'job_id')).toEqual([{ job_id: own }]);
    expect(await rows('app_web', 'queue_batches', 'id')).toHaveLength(1);
    await roles.run('grant select on queue_steps, queue_mailboxes, queue_waits to app_admin');
    expect(await rows('app_admin', 'queue_steps', 'job_id')).toEqual([{ job_id: own }]);
    const withoutTenant = await roles.as('app_admin').db.execute(sql`select from queue_steps`);
    expect([...withoutTenant]).toEqual([]);
    const box = sql`insert into queue_mailboxes (job_id, queue, name) values (${other}, 'default', 'more')`;
    await expectDenied(forTenant('a', 'app_web', (tx) => tx.execute(box)));
    const [batch] = await database.client`select batch_id from queue_waits where job_id = ${other}`;
    const tally = sql`insert into queue_tallies (batch_id, ended) values (${batch?.batch_id}, 1)`;
    await expectDenied(forTenant('a', 'app_web', (tx) => tx.execute(tally)));
    const wait = sql`insert into queue_waits values (${batch?.batch_id}, ${other}, 'default', 'run')`;
    await expectDenied(forTenant('a', 'app_web', (tx) => tx.execute(wait)));
  });

  test('finishes, forks, redrives and cancels its own jobs only', async () => {
    const id = await waitingJob('a');
    await signal('a', id, 1);
    await workOff();
    const as = <T>(tenant: Tenant, run: (tx: Tx) => Promise<T>) => forTenant(tenant, 'app_admin', run);
    const finish = (tenant: Tenant) => as(tenant, (tx) => workflows.finish(tx, { job: work, id }, 'by hand'));
    expect(await finish('b')).toBe('gone');
    await expect(as('b', (tx) => workflows.fork(tx, id, { from: 'approval' }))).rejects.toThrow('no job');
    expect(await as('b', (tx) => workflows.redrive(tx, id, { from: 'approval' }))).toBe('gone');
    expect(await as('b', (tx) => workflows.steps(tx, id))).toEqual([]);
    expect(await finish('a')).toBe('finished');
    // Of a job that has ended, too.
    const forked = await as('a', (tx) => workflows.fork(tx, id, { from: 'next' }));
    expect(forked.steps).toBe(2);
    expect(await as('a', (tx) => queue.cancel(tx, forked.id))).toEqual({ cancelled: true });
    expect(await as('a', (tx) => workflows.redrive(tx, forked.id, { from: 'child' }))).toBe('redriven');
    await workOff();
    expect(await as('a', (tx) => workflows.steps(tx, forked.id))).toMatchObject([
      { name: 'child' },
      { name: 'approval' },
      { name: 'next' },
    ]);
  });

  test('enqueues flows and batches, asks how far they are, and cancels them: not those of another', async () => {
    const { id } = await forTenant('a', 'app_web', (tx) =>
      workflows.enqueueFlow(tx, (flow) => {
        const before = flow.add(leaf, undefined, of('a'));
        flow.add(last, undefined, { after: [before], ...of('a') });
      }),
    );
    const batch = await forTenant('a', 'app_web', (tx) =>
      workflows.enqueueBatch(tx, leaf, [{ ...of('a'), delayMs: 3_600_000 }], { last, ...of('a') }),
    );
    const flow = (tenant: Tenant) => forTenant(tenant, 'app_web', (tx) => workflows.flow(tx, id));
    expect(await flow('b')).toBeUndefined();
    expect(await flow('a')).toMatchObject({ total: 2, pending: 2 });
    const cancel = (tenant: Tenant) =>
      forTenant(tenant, 'app_web', (tx) => workflows.cancelFlow(tx, batch.id));
    expect(await cancel('b')).toBe(false);
    expect(await cancel('a')).toBe(true);
    await workOff();
    expect(await flow('a')).toMatchObject({ pending: 0, failed: 0 });
    expect(await find('a', batch.lastId)).toMatchObject({ output: ['cancelled'] });
  });
});

describe('a worker', () => {
  const TABLES = ['queue_steps', 'queue_mailboxes', 'queue_batches', 'queue_waits', 'queue_tallies'] as const;

  test.each(TABLES)('without a policy on %s is refused what it writes there', async (table) => {
    await roles.run(`drop policy worker on ${table}`);
    onTestFinished(() => roles.run(`create policy worker on ${table} to app_worker using (true)`));
    const { id } = await forTenant('a', 'app_web', (tx) => queue.enqueue(tx, work, undefined, of('a')));
    await signal('a', id, 1);
    await signal('a', id, 2);
    const worker = createWorker(roles.as('app_worker').db, { queue, handlers, log: false });
    onTestFinished(() => worker.stop());
    const problem = new Promise<unknown>((resolve) => {
      worker.on('error', ({ error }) => resolve(error));
      worker.on('failed', ({ error }) => resolve(error));
      worker.on('completed', ({ job }) => job.kind === 'work' && resolve('it was allowed'));
    });
    await worker.start();
    expect(sqlStateOf(await problem)).toBe('42501');
  });

  test('with bypassrls needs no policies', async () => {
    for (const table of TABLES) await roles.run(`drop policy worker on ${table}`);
    await roles.run('alter role app_worker bypassrls');
    onTestFinished(async () => {
      await roles.run('alter role app_worker nobypassrls');
      for (const table of TABLES)
        await roles.run(`create policy worker on ${table} to app_worker using (true)`);
    });
    const id = await waitingJob('a');
    expect(await signal('a', id, 1)).toBe('sent');
    expect(await redeem('a', id, 2)).toBe('sent');
    await workOff();
    expect(await find('a', id)).toMatchObject({ state: 'completed', output: { answers: [1, 2] } });
  });
});

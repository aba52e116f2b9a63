import { text } from 'drizzle-orm/pg-core';
import {
  createQueue,
  createWorker,
  defineJob,
  defineSignal,
  drain,
  fixedBackoff,
  handlersFor,
  limitsIn,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import { createQueueTables } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { tables } from '../queries/support/jobs.ts';
import { addControlTables, addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { Starts } from '../worker/support/starts.ts';

const database = useTestDatabase({ max: 10 });
const answer = defineSignal('answer', unvalidated<number>());

beforeAll(async () => {
  await addControlTables(database);
  await addWorkflowTables(database);
});
beforeEach(async () => {
  await database.client.unsafe(`
    delete from queue_jobs; delete from queue_results; delete from queue_groups; delete from queue_notes;
    delete from queue_holds; delete from queue_limits; delete from queue_usage`);
  await clearWorkflowTables(database);
});

interface Given {
  readonly group: string;
  readonly name: string;
  readonly waits: boolean;
}

/** Jobs that wait for a signal, or not, and then hold their slot until they are let go. */
async function setUp(limits: Parameters<typeof limitsIn>[1][string]) {
  const queue = createQueue({
    tables,
    limits: limitsIn(control, { work: limits }),
    workflows: workflowsIn(workflowTables),
  });
  const { handle } = handlersFor<typeof database.db, typeof queue>();
  const job = defineJob('job', {
    queue: 'work',
    payload: unvalidated<Given>(),
    output: unvalidated<unknown>(),
    backoff: fixedBackoff(0),
    ...(limits.groups !== undefined && { group: ({ group }: Given) => group }),
  });
  const running = new Set<string>();
  const seen = { most: 0 };
  const gates = new Map<string, () => void>();
  onTestFinished(() => {
    for (const open of gates.values()) open();
  });
  for (let at = 0; at < 2; at++) {
    const worker = createWorker(database.db, {
      queue,
      queues: { work: { concurrency: 10 } },
      handlers: [
        handle(job, async ({ payload: { name, waits }, step }) => {
          if (waits) await step.waitForSignal(answer);
          const gate = new Promise<void>((resolve) => gates.set(name, resolve));
          running.add(name);
          seen.most = Math.max(seen.most, running.size);
          await gate;
          running.delete(name);
        }),
      ],
      log: false,
    });
    onTestFinished(() => worker.stop());
    await worker.start();
  }
  const enqueue = async (name: string, waits: boolean, group = 'a') =>
    (await queue.enqueue(database.db, job, { group, name, waits })).id;
  const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;
  const ended = async (id: number) => await queue.waitFor(database.db, job, id, { timeoutMs: 60_000 });
  return { queue, running, seen, gates, enqueue, stateOf, ended };
}

const limits = {
  'its group': { groups: { concurrency: 1 } },
  'its group, in order': { groups: { serial: 'attempt' } },
  'its kind': { kinds: { job: { concurrency: 1 } } },
  'its queue': { concurrency: 1 },
} as const;

describe('a job that waits', () => {
  test.each(Object.entries(limits))(
    'holds no slot of %s, and takes one again when it goes on',
    async (_, limit) => {
      const { queue, running, seen, gates, enqueue, stateOf, ended } = await setUp(limit);
      const waiting = await enqueue('one', true);
      await until(async () => (await stateOf(waiting)) === 'waiting');
      const other = await enqueue('two', false);
      await until(async () => running.has('two'));
      // Its wait is over, and the slot is taken.
      await queue.workflows.signal(database.db, { id: waiting }, answer, 1);
      // Others come and go meanwhile, and it has not begun before the slot is free.
      const third = await enqueue('three', false);
      expect([...running]).toEqual(['two']);
      gates.get('two')?.();
      await ended(other);
      await until(async () => running.size === 1);
      const next = [...running][0] ?? '';
      expect(['one', 'three']).toContain(next);
      gates.get(next)?.();
      await until(async () => running.size === 1 && !running.has(next));
      gates.get([...running][0] ?? '')?.();
      expect([(await ended(waiting)).state, (await ended(third)).state]).toEqual(['completed', 'completed']);
      expect(seen.most).toBe(1);
    },
  );

  test('counts each of its runs as a start of its group', async () => {
    const { queue, running, gates, enqueue, stateOf, ended } = await setUp({
      groups: { concurrency: 5, rate: { limit: 2, perMs: 3_600_000 } },
    });
    const waiting = await enqueue('one', true);
    await until(async () => (await stateOf(waiting)) === 'waiting');
    await queue.workflows.signal(database.db, { id: waiting }, answer, 1);
    await until(async () => running.has('one'));
    // Two starts: the group has no third one, and another group has.
    const late = await enqueue('two', false);
    const other = await enqueue('three', false, 'b');
    await until(async () => running.has('three'));
    expect(await stateOf(late)).toBe('due');
    gates.get('one')?.();
    gates.get('three')?.();
    expect([(await ended(waiting)).state, (await ended(other)).state]).toEqual(['completed', 'completed']);
    expect(running.has('two')).toBe(false);
  });
});

describe('a job that keeps its place until its next attempt', () => {
  /** Its first attempt has failed, and another one of its group is behind it. */
  async function setUpOrder() {
    const queue = createQueue({
      tables,
      limits: limitsIn(control, { work: { groups: { serial: 'end' } } }),
      workflows: workflowsIn(workflowTables),
    });
    const job = defineJob('job', {
      queue: 'work',
      payload: unvalidated<string>(),
      backoff: fixedBackoff(3_600_000),
      group: () => 'a',
    });
    const { handle } = handlersFor<typeof database.db, typeof queue>();
    const ran: string[] = [];
    const handlers = [
      handle(job, async ({ payload, step }) => {
        const times = await step.run('times', () => ran.filter((name) => name === payload).length);
        ran.push(payload);
        if (payload === 'bad' && times === 0) throw new Error('in an hour');
      }),
    ];
    const drained = () => drain(database.db, { queue, handlers, log: false, deadlineMs: 60_000 });
    const { id, jobIds } = await queue.workflows.enqueueFlow(database.db, (flow) => {
      flow.add(job, 'good', { after: [flow.add(job, 'bad')], onFailure: 'run' });
    });
    const other = await queue.enqueue(database.db, job, 'other');
    const ids = [...jobIds, other.id];
    const states = async () =>
      await Promise.all(ids.map(async (id) => (await queue.find(database.db, id))?.state));
    await drained();
    expect(await states()).toEqual(['due', 'waiting', 'due']);
    return { queue, id, ids, ran, drained, states };
  }

  test('ends at once with its flow, and lets the others go on', async () => {
    const { queue, id, ran, drained, states } = await setUpOrder();
    await queue.workflows.cancelFlow(database.db, id);
    await drained();
    expect(await states()).toEqual(['cancelled', 'cancelled', 'completed']);
    expect(ran).toEqual(['bad', 'other']);
    expect(await database.client`select from queue_holds`).toHaveLength(0);
  });

  test('goes back to a step at once, before the others', async () => {
    const { queue, ids, ran, drained, states } = await setUpOrder();
    expect(await queue.workflows.redrive(database.db, ids[0] ?? 0, { from: 'times' })).toBe('redriven');
    await drained();
    expect(await states()).toEqual(['completed', 'completed', 'completed']);
    expect(ran.slice(0, 2)).toEqual(['bad', 'bad']);
    expect(await database.client`select from queue_holds`).toHaveLength(0);
  });
});

describe('a job that costs all the starts of a window', () => {
  const rate = { limit: 3, perMs: 800 };
  const limitsOfStarts = {
    'its queue': { concurrency: 1, rate },
    'its kind': { kinds: { job: { concurrency: 1, rate } } },
    'its group': { groups: { concurrency: 1, rate } },
  } as const;

  describe.each(Object.entries(limitsOfStarts))('by the rate of %s', (where, limit) => {
    /** Jobs that wait for a signal, if they are `big`; each run is noted as so many starts. */
    function setUpCosts() {
      const queue = createQueue({
        tables,
        limits: limitsIn(control, { work: limit }),
        workflows: workflowsIn(workflowTables),
      });
      const { handle } = handlersFor<typeof database.db, typeof queue>();
      const job = defineJob('job', {
        queue: 'work',
        payload: unvalidated<'big' | 'small'>(),
        cost: (size) => (size === 'big' ? rate.limit : 1),
        ...(where === 'its group' && { group: () => 'a' }),
      });
      const starts = new Starts();
      const order: string[] = [];
      const handlers = [
        handle(job, async ({ payload, step }) => {
          starts.note(payload === 'big' ? rate.limit : 1);
          order.push(payload);
          if (payload === 'big') await step.waitForSignal(answer);
        }),
      ];
      const enqueue = async (size: 'big' | 'small') => (await queue.enqueue(database.db, job, size)).id;
      const stateOf = async (id: number) => (await queue.find(database.db, id))?.state;
      const signal = (id: number) => queue.workflows.signal(database.db, { id }, answer, 1);
      return { queue, handlers, starts, order, enqueue, stateOf, signal };
    }

    test('holds none while it waits, and goes on once so many are free: in a worker', async () => {
      const { queue, handlers, starts, order, enqueue, stateOf, signal } = setUpCosts();
      const worker = createWorker(database.db, {
        queue,
        queues: { work: { concurrency: 5 } },
        handlers,
        log: false,
      });
      onTestFinished(() => worker.stop());
      await worker.start();
      const id = await enqueue('big');
      await until(async () => (await stateOf(id)) === 'waiting');
      const small = [await enqueue('small'), await enqueue('small')];
      await until(() => order.length === 3);
      // One start is free now.
      await signal(id);
      await until(async () => (await stateOf(id)) === 'completed');
      expect(order).toEqual(['big', 'small', 'small', 'big']);
      starts.expectWithin(rate);
      for (const one of small) expect(await stateOf(one)).toBe('completed');
    });

    test('holds none while it waits, and goes on once so many are free: in drain', async () => {
      const { queue, handlers, starts, order, enqueue, stateOf, signal } = setUpCosts();
      const drained = () => drain(database.db, { queue, handlers, log: false, deadlineMs: 60_000 });
      const id = await enqueue('big');
      // A process that stands still at the wrong moment puts it back.
      await until(async () => {
        expect(await drained()).toMatchObject({ empty: true });
        return (await stateOf(id)) === 'waiting';
      });
      await enqueue('small');
      await enqueue('small');
      await signal(id);
      let completed = 0;
      // A group whose rate is used up counts as empty, so it takes several.
      await until(async () => {
        completed += (await drained()).completed;
        return completed === 3;
      });
      expect(order.toSorted()).toEqual(['big', 'big', 'small', 'small']);
      starts.expectWithin(rate);
    });
  });
});

test('own columns go with a child, a flow, a batch and a fork', async () => {
  await database.client`alter table queue_jobs add column tenant text`;
  await database.client`alter table queue_results add column tenant text`;
  onTestFinished(async () => {
    await database.client`alter table queue_jobs drop column tenant`;
    await database.client`alter table queue_results drop column tenant`;
  });
  const queue = createQueue({
    tables: createQueueTables({ columns: { tenant: text('tenant') } }),
    workflows: workflowsIn(workflowTables),
  });
  const { handle } = handlersFor<typeof database.db, typeof queue>();
  const settings = { priority: 4, tenant: 'b' };
  const child = defineJob('child', { queue: 'own', output: unvalidated<unknown>() });
  const parent = defineJob('parent', { queue: 'own', output: unvalidated<unknown>() });
  const worker = createWorker(database.db, {
    queue,
    handlers: [
      handle(child, ({ job }) => job.tenant),
      handle(
        parent,
        async ({ step }) => await step.waitForJob(await step.enqueue('child', child, undefined, settings)),
      ),
    ],
    log: false,
  });
  onTestFinished(() => worker.stop());
  await worker.start();
  const { id } = await queue.enqueue(database.db, parent, undefined, { tenant: 'a' });
  expect((await queue.waitFor(database.db, parent, id, { timeoutMs: 60_000 })).state).toBe('completed');
  const rows = await database.client`select kind, tenant from queue_results order by kind`;
  expect(rows).toEqual([
    { kind: 'child', tenant: 'b' },
    { kind: 'parent', tenant: 'a' },
  ]);
  const flow = await queue.workflows.enqueueFlow(database.db, (flow) => {
    const first = flow.add(child, undefined, { tenant: 'c' });
    flow.add(child, undefined, { tenant: 'd', after: [first] });
  });
  const batch = await queue.workflows.enqueueBatch(database.db, child, [{ tenant: 'e' }], {
    ...{ last: child, tenant: 'f' },
  });
  for (const { id } of [flow, batch])
    await queue.workflows.waitForFlow(database.db, id, { timeoutMs: 60_000 });
  await until(async () => (await queue.find(database.db, batch.lastId))?.state === 'completed');
  const members = await database.client`
    select tenant from queue_results where kind = 'child' and tenant > 'b' order by tenant`;
  expect(members.map(({ tenant }) => tenant)).toEqual(['c', 'd', 'e', 'f']);
  const forked = await queue.workflows.fork(database.db, id, { from: 'child' });
  await until(async () => (await queue.find(database.db, forked.id))?.state === 'completed');
  const [fork] = await database.client`select tenant from queue_results where job_id = ${forked.id}`;
  expect(fork).toEqual({ tenant: 'a' });
});

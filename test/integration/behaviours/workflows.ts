import assert from 'node:assert/strict';
import { sql } from 'drizzle-orm';
import {
  createQueue,
  type Database,
  defineJob,
  defineSignal,
  drain,
  fixedBackoff,
  handlersFor,
  unvalidated,
  workflowsIn,
} from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { type Behaviour, rowsOf } from './behaviour.ts';

const queue = createQueue({ workflows: workflowsIn(workflowTables) });
const { handle } = handlersFor<Database, typeof queue>();
const settings = { queue: 'durable', backoff: fixedBackoff(0) };
const order = defineJob('durable-order', { ...settings, output: unvalidated<unknown>() });
const parcel = defineJob('durable-parcel', {
  ...settings,
  payload: unvalidated<number>(),
  output: unvalidated<number>(),
});
const report = defineJob('durable-report', { ...settings, output: unvalidated<unknown>() });
const approval = defineSignal('approval', unvalidated<{ readonly by: string }>());
const parcels = handle(parcel, ({ payload }) => payload * 10);
const DEADLINE = { deadlineMs: 30_000 };

export const workflows: readonly Behaviour[] = [
  {
    name: 'a workflow does each step once, and waits for a time, a signal and a child',
    needs: ['transactions', 'groups'],
    async run({ db }) {
      const calls: string[] = [];
      const handler = handle(order, async ({ step, job }) => {
        const charge = await step.run('charge', () => {
          calls.push('charge');
          return { at: new Date(0), umlaut: 'Ä "\\' };
        });
        if (job.errors.length === 0) throw new Error('in the middle');
        await step.sleep('a moment', 50);
        const answer = await step.waitForSignal(approval);
        const sent = await step.waitForJob(await step.enqueue('parcel', parcel, 7));
        return [charge, answer.by, sent];
      });
      const options = { queue, handlers: [handler, parcels], ...DEADLINE };
      const { id } = await queue.enqueue(db, order);
      await drain(db, options);
      assert.equal(await queue.workflows.signal(db, { id }, approval, { by: 'Ada' }, { key: 'one' }), 'sent');
      assert.equal(
        await queue.workflows.signal(db, { id }, approval, { by: 'Bob' }, { key: 'one' }),
        'duplicate',
      );
      let record = await queue.find(db, order, id);
      // A drain ends when all that is left waits.
      for (let drains = 0; record?.state !== 'completed' && drains < 200; drains++) {
        await drain(db, options);
        record = await queue.find(db, order, id);
      }
      assert.equal(record?.state, 'completed');
      assert.deepEqual(record.output, [{ at: '1970-01-01T00:00:00.000Z', umlaut: 'Ä "\\' }, 'Ada', 70]);
      assert.deepEqual(calls, ['charge']);
      const steps = await queue.workflows.steps(db, id);
      assert.deepEqual(
        steps.map(({ name, kind }) => [name, kind]),
        [
          ['charge', 'run'],
          ['a moment', 'sleep'],
          ['approval', 'signal'],
          ['parcel', 'enqueue'],
          ['parcel: end', 'wait'],
        ],
      );
      assert.ok(steps.every(({ startedAt, endedAt }) => Number(endedAt) >= startedAt.getTime()));
    },
  },
  {
    name: 'a step of a workflow commits with the writes of the app, or neither does',
    needs: ['transactions', 'groups'],
    async run({ db }) {
      await db.execute(sql`create table durable_writes (what text)`);
      const handler = handle(order, async ({ step, job }) => {
        const failed = job.errors.length;
        await step.transaction('write', async (tx) => {
          await tx.execute(sql`insert into durable_writes values ('written')`);
          if (failed === 0) throw new Error('roll back');
        });
        if (failed === 1) throw new Error('after it');
        return 'done';
      });
      const { id } = await queue.enqueue(db, order);
      await drain(db, { queue, handlers: [handler], ...DEADLINE });
      const record = await queue.find(db, order, id);
      assert.deepEqual([record?.state, record?.attempt], ['completed', 2]);
      const rows = rowsOf(await db.execute(sql`select what from durable_writes`));
      await db.execute(sql`drop table durable_writes`);
      assert.equal(rows.length, 1);
    },
  },
  {
    name: 'a flow begins its last job after the others, and a batch has one job at its end',
    needs: ['transactions', 'groups'],
    async run({ db }) {
      const handler = handle(report, async ({ step }) => {
        const ends = await step.parents(parcel);
        const outputs = ends.map((end) => (end.state === 'completed' ? end.output : 0));
        return [await step.parentCounts(), outputs.sort((a, b) => a - b)];
      });
      const options = { queue, handlers: [handler, parcels], ...DEADLINE };
      const flow = await queue.workflows.enqueueFlow(db, (one) => {
        const parts = [1, 2, 3].map((page) => one.add(parcel, page));
        one.add(report, undefined, { after: parts });
      });
      const entries = [{ payload: 4 }, { payload: 5 }];
      const batch = await queue.workflows.enqueueBatch(db, parcel, entries, { last: report });
      await drain(db, options);
      const outputOf = async (id: number) => {
        const record = await queue.find(db, report, id);
        return record?.state === 'completed' ? record.output : record?.state;
      };
      const counts = (total: number) => ({ total, completed: total, failed: 0 });
      assert.deepEqual(await outputOf(Number(flow.jobIds.at(-1))), [counts(3), [10, 20, 30]]);
      assert.deepEqual(await outputOf(batch.lastId), [counts(2), [40, 50]]);
      const ended = await queue.workflows.flow(db, flow.id);
      assert.deepEqual([ended?.total, ended?.pending, ended?.failed], [4, 0, 0]);
    },
  },
];

import { PgDialect } from 'drizzle-orm/pg-core';
import { defineJob } from 'drizzle-queue';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { newJob } from '../../src/core/job/new-job.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { type Runner, sqlStateOf } from '../../src/core/sql/executor.ts';
import { inContext } from '../../src/core/sql/statement-context.ts';
import { WorkerEmitter } from '../../src/core/worker/base/events.ts';
import { foldTallies } from '../../src/features/batches/queries/fold-tallies.ts';
import { TalliedEnds } from '../../src/features/batches/sql/tallied-ends.ts';
import { endAllMembers } from '../../src/features/batches/worker/move-on.ts';
import { Recounting } from '../../src/features/batches/worker/recounting.ts';
import {
  enqueueChildren,
  type InsertedChildren,
} from '../../src/features/workflows/queries/enqueue-children.ts';
import { StepPruning } from '../../src/features/workflows/worker/step-pruning.ts';
import { clearTables, jobRow, tables } from '../queries/support/jobs.ts';
import { addWorkflowTables, clearWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { blocked, whileOpen } from './fixtures/open-transactions.ts';

const database = useTestDatabase({ max: 4 });
const dialect = new PgDialect();
const all = { ...tables, ...workflowTables };

beforeAll(() => addWorkflowTables(database));
beforeEach(async () => {
  await clearTables(database.client);
  await clearWorkflowTables(database);
});

/** Open batches with these ids and one member each, which is gone without a tally. */
async function batches(from: number, to: number): Promise<void> {
  await database.client`
    insert into queue_batches (id, total, pending, created_at) overriding system value
    select n, 1, 1, now() - interval '1 hour' from generate_series(${from}::int, ${to}::int) as n`;
}

/** The recounts of a drain that goes on until the test is over, or until it is told. */
function recounts(db: Runner, { events = new WorkerEmitter(), over = new AbortController() } = {}) {
  const folds: number[] = [];
  const fold = (id: number) => void folds.push(id);
  const recounting = new Recounting({
    db,
    tables: all,
    channel: undefined,
    events,
    fold,
    until: 'empty',
  });
  const running = recounting.run(over.signal);
  onTestFinished(async () => {
    over.abort();
    await running;
  });
  return { folds, running };
}

async function recounted(): Promise<number[]> {
  const rows = await database.client`
    select id::int from queue_batches where recounted_at is not null order by id`;
  return rows.map(({ id }) => id);
}

describe('a recount', () => {
  test('of a batch that is locked waits for nothing, and those behind it are recounted', async () => {
    await batches(1, 3);
    await database.client.begin(async (tx) => {
      await tx`select from queue_batches where id = 2 for update`;
      const { folds } = recounts(database.db);
      await until(() => folds.length === 2);
      expect(folds.sort()).toEqual([1, 3]);
      expect(await recounted()).toEqual([1, 3]);
    });
  });

  test('that a row refuses is an error, and those behind it are recounted', async () => {
    const { client, db } = database;
    await batches(1, 3);
    await client`alter table queue_batches add constraint refused check (id <> 2 or recounted_at is null)`;
    onTestFinished(async () => void (await client`alter table queue_batches drop constraint refused`));
    const events = new WorkerEmitter();
    const errors: unknown[] = [];
    events.on('error', ({ error }) => errors.push(sqlStateOf(error) ?? error));
    const { folds } = recounts(db, { events });
    await until(() => folds.length === 2);
    expect(folds.sort()).toEqual([1, 3]);
    expect(await recounted()).toEqual([1, 3]);
    await until(() => errors.length > 0);
    expect(errors[0]).toBe('23514');
  });
});

describe('a child that is enqueued while its parent ends as cancelled', () => {
  const members = inContext(all, { members: new TalliedEnds(workflowTables) });
  const holder = { queue: 'q', workerId: 7 };
  const transition = {
    type: 'finish',
    state: 'cancelled',
    output: null,
    error: null,
    keepResult: true,
  } as const;
  const reasonOf = async (id: number | undefined) =>
    (await jobRow(database.client, Number(id)))?.cancel_reason;

  /** The settlement waits for the parent's row, with a snapshot from before the child was there. */
  async function enqueued(policy: 'parent' | 'detached', parent: number): Promise<number | undefined> {
    await database.client`
      insert into queue_jobs (id, queue, kind, payload, max_attempts, worker_id, claimed_at, fence)
      overriding system value values (${parent}, 'q', 'parent', '1', 3, 7, now(), 5)`;
    const child = await newJob(defineJob('child', { queue: 'kids' }), undefined);
    const step = { id: parent, fence: 5, name: 'one', tookMs: 1 };
    let ending: Promise<ReadonlySet<number>> = Promise.resolve(new Set());
    let children: InsertedChildren | undefined;
    await whileOpen(
      database,
      async (tx) => {
        const one = { step, jobs: [child], policy, wakeUp: undefined };
        children = await enqueueChildren(tx, all, holder, one, 'wait');
      },
      async () => {
        const settled = finishJobs(database.db, members, holder, [{ id: parent, fence: 5, transition }]);
        ending = (await blocked(database, settled)).answer;
      },
    );
    expect([...(await ending)]).toEqual([parent]);
    expect(await database.client`select from queue_tallies`).toHaveLength(0);
    return children?.ids[0];
  }

  test('is asked to end as well', async () => {
    const id = await enqueued('parent', 9);
    const { folds } = recounts(database.db);
    await until(() => folds.length > 0);
    await foldTallies(database.db, all, { channel: undefined, locks: 'briefly' });
    await endAllMembers(database.db, all, folds, undefined);
    expect(await reasonOf(id)).toBe('The job that enqueued it was cancelled');
  });

  test('goes on if it is detached, or if its parent was put back', async () => {
    const detached = await enqueued('detached', 8);
    const put = await enqueued('parent', 9);
    await database.client`
      insert into queue_jobs (id, queue, kind, payload, max_attempts) overriding system value
      values (9, 'q', 'parent', '1', 3)`;
    await batches(100, 100);
    const { folds } = recounts(database.db);
    await until(() => folds.length > 0);
    expect(folds).toEqual([100]);
    expect([await reasonOf(detached), await reasonOf(put)]).toEqual([null, null]);
  });
});

describe('where only drains look, each over before its first slice is', () => {
  /** One that ends with its first statement of this sort. */
  const endingWith = (marker: string, over: AbortController): Runner => ({
    execute: async (query) => {
      const answer = await database.db.execute(query);
      if (dialect.sqlToQuery(query.getSQL()).sql.includes(marker)) over.abort();
      return answer;
    },
  });

  test('batches behind the oldest thousand are recounted, too', async () => {
    await batches(1, 2_000);
    await until(async () => {
      const over = new AbortController();
      await recounts(endingWith('recounted as', over), { over }).running;
      return (await recounted()).some((id) => id > 1_000);
    });
  });

  test('steps behind those of a thousand live jobs are deleted, too', async () => {
    const { client } = database;
    await client`
      insert into queue_jobs (id, queue, kind, payload, max_attempts) overriding system value
      select n, 'q', 'k', '1', 3 from generate_series(1, 1000) as n`;
    await client`
      insert into queue_steps (job_id, queue, name, kind, fence, started_at)
      select n, 'q', 's', 'run', 1, now() from generate_series(1, 2000) as n`;
    await until(async () => {
      const over = new AbortController();
      const db = endingWith('with slice as', over);
      await new StepPruning(db, all, new WorkerEmitter(), 'empty').run(over.signal);
      const [left] = await client`select count(*)::int as n from queue_steps`;
      return left?.n < 2_000;
    });
  });
});

import { createQueue, createWorker, defineJob, fixedBackoff, handle, unvalidated } from 'drizzle-queue';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Transition } from '../../../src/core/job/transition.ts';
import type { Runner } from '../../../src/core/sql/executor.ts';
import { Retries } from '../../../src/core/time/retries.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { Settler } from '../../../src/core/worker/settle/settle.ts';
import { addJobs, clearTables, tables } from '../../queries/support/jobs.ts';
import { citusCluster } from '../../support/citus.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase({ max: 10 });
const queue = createQueue({ tables });
const work = defineJob('work', {
  queue: 'q',
  payload: unvalidated<number>(),
  backoff: fixedBackoff(3_600_000),
});
const finish = {
  type: 'finish',
  state: 'completed',
  output: '1',
  error: null,
  keepResult: true,
} as const satisfies Transition;

beforeEach(() => clearTables(database.client));
afterEach(async () => {
  await database.client`drop function if exists refuse() cascade`;
  await database.client`drop sequence if exists refusals`;
});

/** Lets the app's own trigger refuse what is done to the job with the payload 13. */
async function refuse(
  on: 'insert on queue_results' | 'update or delete on queue_jobs',
  how: string,
): Promise<void> {
  await database.client.unsafe(`
    create function refuse() returns trigger language plpgsql as $$ begin
      if coalesce(old.payload, new.payload) = '13' then ${how}; end if;
      return coalesce(new, old);
    end $$`);
  await database.client.unsafe(`
    create trigger refuse before ${on} for each row execute function refuse()`);
}

/** Resolves once no other connection is at a statement. */
const untilQuiet = () =>
  until(async () => {
    const [row] = await database.client<[{ count: number }]>`
      select count(*)::int from pg_stat_activity
      where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid()`;
    return row.count === 0;
  });

const refusals = [
  ['P0001', `raise exception 'no'`],
  ['42501', `raise insufficient_privilege`],
  ['XX001', `raise data_corrupted`],
  // What Citus makes of any refusal of a result.
  ['XX000', `raise internal_error`],
  ['42703', `raise undefined_column`],
  ['57014', `raise query_canceled`],
] as const;

describe('a row that the database refuses', () => {
  test.each(refusals)('with %s, among 1,000, costs the others a few statements', async (sqlState, how) => {
    const ids = await addJobs(
      database.client,
      Array.from({ length: 1_000 }, (_, payload) => ({ payload, workerId: 1 })),
    );
    await refuse('insert on queue_results', how);
    let statements = 0;
    const db: Runner = {
      execute: (query) => {
        statements++;
        return database.db.execute(query);
      },
    };
    const settler = new Settler({
      db,
      tables,
      holder: { queue: 'q', workerId: 1 },
      events: new WorkerEmitter(),
      retries: new Retries(),
      giveUp: new AbortController().signal,
    });
    const answers = await Promise.allSettled(
      ids.map((id) => settler.settle({ id, fence: 0, transition: finish })),
    );
    await settler.idle();
    const bad = answers.flatMap((answer, index) =>
      answer.status === 'rejected' ? [[index, answer.reason]] : [],
    );
    // A cluster copies results to their shards, and hides why one of these refuses a row.
    const code = citusCluster() === undefined ? sqlState : 'XX000';
    expect(bad).toEqual([[13, expect.objectContaining({ cause: expect.objectContaining({ code }) })]]);
    expect(
      answers.filter((answer) => answer.status === 'fulfilled' && answer.value === 'written'),
    ).toHaveLength(999);
    // Its halves, their halves, and so on: twice the ten levels.
    expect(statements).toBeLessThanOrEqual(21);
  });

  test('in whatever way, holds up no other, and is written when the database accepts it', async () => {
    await refuse(
      'update or delete on queue_jobs',
      `if new.worker_id is null then raise exception 'no'; end if`,
    );
    const worker = createWorker(database.db, { queue, handlers: [handle(work, ({ payload }) => payload)] });
    const refused: string[] = [];
    let completed = 0;
    worker.on('error', ({ during }) => refused.push(during));
    worker.on('completed', () => completed++);
    await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: 200 }, (_, payload) => ({ payload })),
    );
    await worker.start();
    await until(() => completed === 199 && refused.length > 0);
    const [bad] = (await queue.list(database.db, { state: 'running' })).jobs;
    expect(bad?.payload).toBe(13);
    expect(new Set(refused)).toEqual(new Set([`settling job ${bad?.id} of 'q'`]));
    await database.client`drop function refuse() cascade`;
    await until(() => completed === 200);
    // Its own outcome, not a failure of the attempt.
    expect(await queue.find(database.db, bad?.id ?? 0)).toMatchObject({
      state: 'completed',
      output: 13,
      attempt: 1,
    });
    await worker.stop();
  });

  test('alone, because its statement is cancelled, has not failed, and is written as it has ended', async () => {
    await refuse(
      'update or delete on queue_jobs',
      'if new.worker_id is null then raise query_canceled; end if',
    );
    const worker = createWorker(database.db, { queue, handlers: [handle(work, ({ payload }) => payload)] });
    const refused: string[] = [];
    const ended: string[] = [];
    worker.on('error', ({ during }) => refused.push(during));
    for (const event of ['completed', 'failed', 'discarded', 'lost'] as const)
      worker.on(event, () => ended.push(event));
    const { id } = await queue.enqueue(database.db, work, 13, { maxAttempts: 1 });
    await worker.start();
    await until(() => refused.length > 1);
    expect(new Set(refused)).toEqual(new Set([`settling job ${id} of 'q'`]));
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'running', errors: [] });
    await database.client`drop function refuse() cascade`;
    await until(() => ended.length > 0);
    await worker.stop();
    expect(ended).toEqual(['completed']);
    expect(await queue.find(database.db, id)).toMatchObject({
      state: 'completed',
      output: 13,
      attempt: 1,
      errors: [],
    });
  });

  test('keeps no stop waiting, and nothing is written after it; a hundred of them lead to no warning of Node.js', async () => {
    const warnings: string[] = [];
    const onWarning = ({ name }: Error) => void warnings.push(name);
    process.on('warning', onWarning);
    onTestFinished(() => void process.off('warning', onWarning));
    // What a transaction takes from a sequence stays taken when it is refused.
    await database.client`create sequence refusals`;
    await refuse(
      'update or delete on queue_jobs',
      `if new.worker_id is null then perform nextval('refusals'); raise exception 'no'; end if`,
    );
    const refusals = async () => {
      const [row] = await database.client<[{ count: string }]>`
        select case when is_called then last_value else 0 end as count from refusals`;
      return Number(row.count);
    };
    const shutdownTimeoutMs = 1_000;
    const worker = createWorker(database.db, {
      queue,
      queues: { q: { concurrency: 100 } },
      handlers: [handle(work, () => undefined)],
      shutdownTimeoutMs,
    });
    const refused = new Set<string>();
    worker.on('error', ({ during }) => refused.add(during));
    await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: 100 }, () => ({ payload: 13 })),
    );
    await worker.start();
    await until(() => refused.size === 100);
    expect(await refusals()).toBeGreaterThan(0);
    // From now on a statement is under way at any moment, also at the last.
    await database.client.unsafe(`
      create or replace function refuse() returns trigger language plpgsql as $$ begin
        if new.worker_id is null then
          perform pg_sleep(0.05);
          perform nextval('refusals');
          raise exception 'no';
        end if;
        return coalesce(new, old);
      end $$`);
    const startMs = performance.now();
    await worker.stop();
    const tookMs = performance.now() - startMs;
    const atTheEnd = await refusals();
    // Whatever was still under way would be over by then.
    await untilQuiet();
    expect(await refusals()).toBe(atTheEnd);
    expect(tookMs).toBeLessThan(shutdownTimeoutMs + 6_000);
    expect(warnings).toEqual([]);
  });
});

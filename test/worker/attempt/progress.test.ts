import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, type HandlerContext, handle, runNext } from 'drizzle-queue';
import postgres from 'postgres';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { nextEvent } from '../next-event.ts';

const database = useTestDatabase({ max: 6 });
const queue = createQueue();
const work = defineJob('work');
type Job = HandlerContext<typeof work>['job'];

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers', 'queue_pauses');
});

/** A worker with so many running jobs, which end when they are told; and the statements that write progress. */
async function running(count = 1) {
  const statements: string[] = [];
  const client = postgres(database.url, { max: 6, debug: (_, text) => statements.push(text) });
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const jobs: Job[] = [];
  const errors: unknown[] = [];
  const worker = createWorker(drizzle({ client }), {
    queue,
    handlers: [
      handle(work, async ({ job }) => {
        jobs.push(job);
        await finished;
      }),
    ],
  });
  worker.on('error', (error) => errors.push(error));
  onTestFinished(async () => {
    finish();
    await worker.stop();
    await client.end({ timeout: 1 });
  });
  await worker.start();
  await queue.enqueueMany(database.db, work, new Array(count).fill({}));
  await until(() => jobs.length === count);
  const [job] = jobs;
  if (job === undefined) throw new Error('no job');
  const written = () => statements.filter((text) => /set progress/.test(text)).length;
  return { worker, jobs, job, errors, written, finish };
}

/** What `find` shows. */
async function shown({ id }: { readonly id: number }): Promise<unknown> {
  const record = await queue.find(database.db, id);
  return record !== undefined && 'progress' in record ? record.progress : 'none';
}

describe('job.progress', () => {
  test.each([[42], [{ page: 3 }], ['half way'], [[1, null]], [null], [false]])(
    'is shown while the job runs: %o',
    async (value) => {
      const { job } = await running();
      expect(await shown(job)).toBeNull();
      job.progress({ before: true });
      await until(async () => (await shown(job)) !== null);
      job.progress(value);
      await until(async () => JSON.stringify(await shown(job)) === JSON.stringify(value));
    },
  );

  test('is written at most four times a second, the last value always, and nothing without it', async () => {
    const { job, written } = await running();
    expect(written()).toBe(0);
    const startMs = performance.now();
    let last = 0;
    while (performance.now() - startMs < 1_500) {
      job.progress(++last);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await until(async () => (await shown(job)) === last);
    const seconds = (performance.now() - startMs) / 1_000;
    expect(written()).toBeGreaterThan(1);
    expect(written()).toBeLessThanOrEqual(4 * seconds + 1);
    const before = written();
    // Nothing is left to write: the next value goes out at once, in one statement more.
    job.progress('more');
    await until(async () => (await shown(job)) === 'more');
    expect(written()).toBe(before + 1);
  });

  test('of many jobs is written in one statement', async () => {
    const { jobs, written } = await running(10);
    for (const job of jobs) job.progress(`of ${job.id}`);
    await until(async () => {
      const { jobs: records } = await queue.list(database.db);
      return records.every((record) => 'progress' in record && record.progress === `of ${record.id}`);
    });
    expect(written()).toBe(1);
  });

  test('is gone with the job, and not in its result', async () => {
    const { job, worker, finish } = await running();
    job.progress(50);
    await until(async () => (await shown(job)) === 50);
    const completed = nextEvent(worker, 'completed');
    finish();
    await completed;
    expect(await shown(job)).toBe('none');
    const [result] = await database.client`select to_jsonb(r) as row from queue_results as r`;
    expect(result?.row).not.toHaveProperty('progress');
  });

  test('stays on a job that waits for its next attempt', async () => {
    const worker = createWorker(database.db, {
      queue,
      handlers: [
        handle(work, async ({ job }) => {
          job.progress('so far');
          await until(async () => (await shown(job)) === 'so far');
          throw new Error('no further');
        }),
      ],
    });
    onTestFinished(() => worker.stop());
    const { id } = await queue.enqueue(database.db, work);
    const failed = nextEvent(worker, 'failed');
    await worker.start();
    await failed;
    expect(await shown({ id })).toBe('so far');
  });

  test('is fenced: of a job that another has claimed nothing is written', async () => {
    const { job, written, worker } = await running();
    let lost = false;
    worker.on('lost', () => {
      lost = true;
    });
    await database.client`update queue_jobs set fence = fence + 1, worker_id = 424242, progress = '"theirs"'`;
    job.progress('mine');
    await until(() => written() > 0);
    // The statement has ended when the next one begins, or when the worker has found out that it lost the job.
    await until(() => written() > 1 || lost);
    expect(await shown(job)).toBe('theirs');
  });

  test('waits for no lock, and is written when the row is free again', async () => {
    const { jobs } = await running(2);
    const [locked, free] = jobs;
    await database.client.begin(async (tx) => {
      await tx`select from queue_jobs where queue = 'default' and id = ${locked?.id ?? 0} for update`;
      locked?.progress('a');
      free?.progress('b');
      await until(async () => (await shown({ id: free?.id ?? 0 })) === 'b');
      expect(await shown({ id: locked?.id ?? 0 })).toBeNull();
    });
    await until(async () => (await shown({ id: locked?.id ?? 0 })) === 'a');
  });

  test.each<[string, unknown, RegExp]>([
    ['a function', () => {}, /function/],
    ['NaN', { at: Number.NaN }, /NaN/],
    ['NUL', 'a\0', /NUL/i],
    ['more than 4,096 bytes', 'x'.repeat(4_095), /4096 bytes/],
    [
      'what throws when it is read',
      {
        get boom() {
          throw new Error('a getter');
        },
      },
      /a getter/,
    ],
  ])('never throws: %s is an error of the worker', async (_, value, message) => {
    const { job, errors } = await running();
    job.progress('before');
    job.progress(value);
    expect(errors).toMatchObject([
      {
        error: { message: expect.stringMatching(message) },
        during: `the progress of job ${job.id} of 'default'`,
      },
    ]);
    await until(async () => (await shown(job)) === 'before');
  });

  test('that cannot be written is an error of the worker, once, and no failure of the job', async () => {
    const { job, errors, worker, finish, written } = await running();
    await database.client`alter table queue_jobs rename column progress to hidden`;
    onTestFinished(async () => {
      await database.client`alter table if exists queue_jobs rename column hidden to progress`.catch(
        () => {},
      );
    });
    job.progress(1);
    job.progress(2);
    await until(() => errors.length > 0);
    expect(errors).toMatchObject([{ during: "writing the progress of jobs of 'default'" }]);
    await database.client`alter table queue_jobs rename column hidden to progress`;
    await until(async () => (await shown(job)) === 2);
    expect(written()).toBe(2);
    const completed = nextEvent(worker, 'completed');
    finish();
    await completed;
    expect(errors).toHaveLength(1);
  });

  test('of one job that the database refuses holds up that of no other, and is written once it may be', async () => {
    const { jobs, errors, written } = await running(5);
    const [refused, ...others] = jobs;
    await database.client`
      alter table queue_jobs add constraint no_nines check (progress is null or progress <> '999')`;
    onTestFinished(async () => {
      await database.client`alter table queue_jobs drop constraint if exists no_nines`;
    });
    refused?.progress(999);
    for (const job of others) job.progress(1);
    for (const job of others) await until(async () => (await shown(job)) === 1);
    await until(() => errors.length > 0);
    const before = written();
    // The next values of the others go out in one statement, without the refused one.
    for (const job of others) job.progress(2);
    for (const job of others) await until(async () => (await shown(job)) === 2);
    expect(written()).toBe(before + 1);
    expect(errors).toMatchObject([{ during: `writing the progress of job ${refused?.id} of 'default'` }]);
    await database.client`alter table queue_jobs drop constraint no_nines`;
    await until(async () => (await shown({ id: refused?.id ?? 0 })) === 999);
  });

  test('in runNext changes nothing, and harms nothing', async () => {
    const { id } = await queue.enqueue(database.db, work);
    const ran = await runNext(database.db, {
      queue,
      handlers: [handle(work, ({ job }) => job.progress(50))],
    });
    expect(ran).toMatchObject({ outcome: 'completed', job: { id } });
  });

  test('may be taken from its job, and called after the end', async () => {
    const { job, written, worker, finish } = await running();
    const { progress } = job;
    const completed = nextEvent(worker, 'completed');
    finish();
    await completed;
    progress('too late');
    const next = nextEvent(worker, 'completed');
    await queue.enqueue(database.db, work);
    await next;
    expect(written()).toBe(0);
  });
});

import type { SQLWrapper } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import { createQueue, defineJob } from 'drizzle-queue';
import { queueJobs } from 'drizzle-queue/schema';
import { describe, expect, test } from 'vitest';
import type { Transition } from '../../../src/core/job/transition.ts';
import { finishJobs } from '../../../src/core/queries/settle/finish-jobs.ts';
import { rescheduleJobs } from '../../../src/core/queries/settle/reschedule-jobs.ts';
import type { Runner } from '../../../src/core/sql/executor.ts';
import { Retries } from '../../../src/core/time/retries.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { Settler } from '../../../src/core/worker/settle/settle.ts';
import { useTestDatabase } from '../../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work');
const holder = { queue: 'default', workerId: 7 };
const later = (attempt: number) =>
  ({ type: 'reschedule', delayMs: 3_600_000, attempt, error: null }) as const satisfies Transition;
const finish = (output: string) =>
  ({
    type: 'finish',
    state: 'completed',
    output,
    error: null,
    keepResult: true,
  }) as const satisfies Transition;

const dialect = new PgDialect();
const render = (query: SQLWrapper) => dialect.sqlToQuery(query.getSQL()).sql.trim();

function newSettler(db: Runner, events: WorkerEmitter): Settler {
  const giveUp = new AbortController().signal;
  return new Settler({ db, tables: queue.tables, holder, events, retries: new Retries(), giveUp });
}

/** A job that worker 7 has claimed three times: it lost it, was given it again, and holds it under fence 3. */
async function claimedThrice(): Promise<number> {
  const { id } = await queue.enqueue(database.db, work);
  await database.db.update(queueJobs).set({ workerId: 7, fence: 3, attempt: 3, claimedAt: new Date() });
  return id;
}

test('a lost attempt that ends together with a newer one of the same job changes nothing, and is told so', async () => {
  const id = await claimedThrice();
  const settler = newSettler(database.db, new WorkerEmitter());
  const answers = await Promise.all([
    settler.settle({ id, fence: 1, transition: later(1) }),
    settler.settle({ id, fence: 3, transition: finish('"new"') }),
    settler.settle({ id, fence: 1, transition: finish('"old"') }),
  ]);
  expect(answers).toEqual(['lost', 'written', 'lost']);
  expect(await queue.find(database.db, id)).toMatchObject({ state: 'completed', output: 'new', attempt: 3 });
});

test('what has ended is not written again, nor called lost, when only the rest of its batch fails', async () => {
  const [ends, goesBack] = await queue.enqueueMany(database.db, work, [{}, {}]);
  await database.db.update(queueJobs).set({ workerId: 7, fence: 1, attempt: 1, claimedAt: new Date() });
  const errors: unknown[] = [];
  let failures = 0;
  const db: Runner = {
    execute: async (query) => {
      if (render(query).startsWith('with i') && /set .*run_at/s.test(render(query)) && failures++ === 0)
        throw new Error('the connection broke');
      return await database.db.execute(query);
    },
  };
  const events = new WorkerEmitter();
  events.on('error', ({ error }) => errors.push(error));
  const settler = newSettler(db, events);
  const answers = await Promise.all([
    settler.settle({ id: ends?.id ?? 0, fence: 1, transition: finish('"done"') }),
    settler.settle({ id: goesBack?.id ?? 0, fence: 1, transition: later(1) }),
  ]);
  expect(answers).toEqual(['written', 'written']);
  expect([failures, errors.length]).toEqual([2, 1]);
});

test('what was never sent is told as lost, also when it looks as if it had been written', async () => {
  const [ends, goesBack] = await queue.enqueueMany(database.db, work, [{}, {}]);
  const id = goesBack?.id ?? 0;
  await database.db.update(queueJobs).set({ workerId: 7, fence: 1, attempt: 1, claimedAt: new Date() });
  let isLost = false;
  const db: Runner = {
    execute: async (query) => {
      const answer = await database.db.execute(query);
      if (isLost) return answer;
      // The answer to the first statement, before the second is sent; and somebody else puts the other job back.
      isLost = true;
      await database.client`update queue_jobs set worker_id = null, claimed_at = null where id = ${id}`;
      throw new Error('the connection broke');
    },
  };
  const events = new WorkerEmitter();
  events.on('error', () => {});
  const settler = newSettler(db, events);
  const answers = await Promise.all([
    settler.settle({ id: ends?.id ?? 0, fence: 1, transition: finish('"done"') }),
    settler.settle({ id, fence: 1, transition: later(1) }),
  ]);
  expect(answers).toEqual(['written', 'lost']);
});

test('in one statement, too, only the values of the fence that holds are written', async () => {
  const both = (id: number, make: (n: number) => Transition) =>
    [3, 1].map((fence) => ({ id, fence, transition: make(fence) }));
  const again = await claimedThrice();
  await rescheduleJobs(
    database.db,
    queue.tables,
    holder,
    both(again, later) as Parameters<typeof rescheduleJobs>[3],
  );
  expect(await queue.find(database.db, again)).toMatchObject({ state: 'scheduled', attempt: 3 });
  await database.client`delete from queue_jobs`;
  const ended = await claimedThrice();
  await finishJobs(
    database.db,
    queue.tables,
    holder,
    both(ended, (n) => finish(String(n))) as Parameters<typeof finishJobs>[3],
  );
  expect(await queue.find(database.db, ended)).toMatchObject({ state: 'completed', output: 3 });
});

describe('giving up', () => {
  const given = async (count: number) => {
    const jobs = await queue.enqueueMany(
      database.db,
      work,
      Array.from({ length: count }, () => ({})),
    );
    await database.db.update(queueJobs).set({ workerId: 7, fence: 1, attempt: 1, claimedAt: new Date() });
    return jobs.map(({ id }) => id);
  };

  const refused = Object.assign(new Error('no'), { code: 'P0001' });
  test.each([
    [
      'is refused for what is in it',
      3,
      () => new Promise((_, reject) => setImmediate(() => reject(refused))),
    ],
    ['is refused by a server that goes down', 1, () => Promise.reject(new Error('the connection broke'))],
    ['is not answered', 1, () => new Promise(() => undefined)],
  ])('while a batch %s, sends nothing more, and answers all', async (_, last, execute) => {
    const ids = await given(500);
    const giveUp = new AbortController();
    const events = new WorkerEmitter();
    const errors: string[] = [];
    events.on('error', ({ during }) => errors.push(during));
    let statements = 0;
    const db: Runner = {
      execute: () => {
        if (++statements === last) process.nextTick(() => giveUp.abort());
        return execute();
      },
    };
    const options = {
      db,
      tables: queue.tables,
      holder,
      events,
      retries: new Retries(),
      giveUp: giveUp.signal,
    };
    const settler = new Settler(options);
    const [id = 0] = ids;
    const transition = finish('1');
    const answers = ids.map((id) => settler.settle({ id, fence: 1, transition }));
    const settled = await Promise.allSettled(answers);
    // What is sent in vain is sent in the turns after the answers.
    for (let turns = 0; turns < 10; turns++) await new Promise(setImmediate);
    expect(statements).toBe(last);
    expect(settled).toEqual(answers.map(() => ({ status: 'fulfilled', value: 'abandoned' })));
    expect(await settler.settle({ id, fence: 1, transition })).toBe('abandoned');
    expect(await settler.settleAlone({ id, fence: 1, transition })).toBe('abandoned');
    // A statement that is never answered stays under way.
    if (statements > 1) await settler.idle();
    for (let turns = 0; turns < 10; turns++) await new Promise(setImmediate);
    expect(statements).toBe(last);
    expect(errors.at(-1)).toBe("settling 500 jobs of 'default'");
  });

  test('by who hears the first answer of a batch takes none of the others away', async () => {
    const ids = await given(3);
    const giveUp = new AbortController();
    const settler = new Settler({
      db: database.db,
      tables: queue.tables,
      holder,
      events: new WorkerEmitter(),
      retries: new Retries(),
      giveUp: giveUp.signal,
    });
    const heard: unknown[] = [];
    const settled = (result: unknown) => {
      giveUp.abort();
      heard.push(result);
    };
    const refused = (refusal: unknown) => void heard.push(refusal);
    for (const id of ids) settler.settleFor({ id, fence: 1 }, finish('1'), { settled, refused });
    await settler.idle();
    expect(heard).toEqual(['written', 'written', 'written']);
  });
});

import { beforeEach, describe, expect, test } from 'vitest';
import { type DueLook, findDue } from '../../src/core/queries/claim/find-due.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJob, addJobs, clearTables, tables } from './support/jobs.ts';

const database = useTestDatabase();
const fromStart = (queue: string): DueLook => ({ queue, floorMs: Number.NEGATIVE_INFINITY });
const question = (looks: readonly DueLook[]) => ({ looks, kinds: ['k'], horizonMs: 2_000 });
const ask = async (...looks: DueLook[]) => {
  const answers = await findDue(database.db, tables, question(looks));
  return new Map(answers.map(({ queue, dueInMs }) => [queue, dueInMs]));
};

describe('findDue', () => {
  beforeEach(() => clearTables(database.client));

  test('answers for each queue that was asked about, in any state', async () => {
    await addJobs(database.client, [
      { queue: 'due', dueInMs: 500, priority: 0 },
      { queue: 'due', dueInMs: -700, priority: 9 },
      { queue: 'soon', dueInMs: 1_900 },
      { queue: 'soon', dueInMs: 1_000, priority: 8 },
      { queue: 'later', dueInMs: 60_000 },
    ]);
    const answers = await ask(...['due', 'soon', 'later', 'empty'].map((queue) => fromStart(queue)));
    expect([...answers.keys()].sort()).toEqual(['due', 'empty', 'later', 'soon']);
    expect(answers.get('due')).toBeLessThanOrEqual(-700);
    expect(answers.get('soon')).toBeGreaterThan(0);
    expect(answers.get('soon')).toBeLessThanOrEqual(1_000);
    expect(answers.get('later')).toBeUndefined();
    expect(answers.get('empty')).toBeUndefined();
  });

  test('finds the same among many queues, whatever their priorities', async () => {
    const queues = Array.from({ length: 150 }, (_, n) => `q${n}`);
    await addJobs(database.client, [
      { queue: 'q0', dueInMs: -700, priority: 0 },
      { queue: 'q0', dueInMs: -900, priority: 9 },
      { queue: 'q140', dueInMs: -800, priority: 9 },
      { queue: 'q149', dueInMs: 60_000 },
    ]);
    const answers = await ask(...queues.map(fromStart));
    expect([...answers.keys()].sort()).toEqual(queues.toSorted());
    expect(answers.get('q0')).toBeLessThanOrEqual(-900);
    expect(answers.get('q140')).toBeLessThanOrEqual(-800);
    expect([...answers.values()].filter((dueInMs) => dueInMs !== undefined)).toHaveLength(2);
    await clearTables(database.client);
    const none = await ask(...queues.map(fromStart));
    expect(none.size).toBe(150);
    expect(new Set(none.values())).toEqual(new Set([undefined]));
  });

  test('says when the database looked', async () => {
    const [answer] = await findDue(database.db, tables, question([fromStart('q')]));
    const [row] = await database.client<{ ago: number }[]>`
      select extract(epoch from clock_timestamp())::float8 * 1000 - ${answer?.nowMs ?? 0}::float8 as ago`;
    expect(row?.ago).toBeGreaterThan(0);
    expect(row?.ago).toBeLessThan(10_000);
  });

  test('leaves out other kinds, what is held, and what lies below the floor', async () => {
    await database.client`insert into queue_workers (id, name, queues) overriding system value values (7, 'w', '[]')`;
    await addJobs(database.client, [
      { queue: 'kind', kind: 'other' },
      { queue: 'held', workerId: 7 },
      { queue: 'floor', dueInMs: -5_000 },
    ]);
    const floorMs = Date.now() - 3_000;
    const looks = [fromStart('kind'), fromStart('held'), { ...fromStart('floor'), floorMs }];
    expect([...(await ask(...looks)).values()]).toEqual([undefined, undefined, undefined]);
    expect((await ask(fromStart('floor'))).get('floor')).toBeLessThan(0);
  });

  test('waits for nobody', async () => {
    const id = await addJob(database.client, { queue: 'q' });
    await database.client.begin(async (tx) => {
      await tx`select from queue_jobs where id = ${id} for update`;
      expect((await ask(fromStart('q'))).get('q')).toBeLessThan(0);
    });
  });
});

import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type DueLook, findDue, findDueQuery } from '../../src/queries/find-due.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, explain, nodesOf, type PlanMode } from './support/explain.ts';
import { addJob, addJobs, clearTables, tables } from './support/jobs.ts';
import { type Backend, twoBackends } from './support/locks.ts';

const database = useTestDatabase();
const fromStart = (queue: string, fromGoneWorkers = false): DueLook => ({
  queue,
  floorMs: Number.NEGATIVE_INFINITY,
  fromGoneWorkers,
});
const question = (looks: readonly DueLook[], workerId = 1) => ({
  looks,
  kinds: ['k'],
  workerId,
  horizonMs: 2_000,
});
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
    const looks = [fromStart('kind'), fromStart('held', true), { ...fromStart('floor'), floorMs }];
    expect([...(await ask(...looks)).values()]).toEqual([undefined, undefined, undefined]);
    expect((await ask(fromStart('floor'))).get('floor')).toBeLessThan(0);
  });

  test('finds jobs of workers that are gone where it is told to, but never its own', async () => {
    await addJobs(database.client, [
      { queue: 'a', workerId: 7 },
      { queue: 'b', workerId: 7 },
      { queue: 'own', workerId: 1 },
    ]);
    const answers = await ask(fromStart('a', true), fromStart('b'), fromStart('own', true));
    expect(answers.get('a')).toBeLessThan(0);
    expect(answers.get('b')).toBeUndefined();
    expect(answers.get('own')).toBeUndefined();
  });

  test('waits for nobody', async () => {
    const id = await addJob(database.client, { queue: 'q' });
    await database.client.begin(async (tx) => {
      await tx`select from queue_jobs where id = ${id} for update`;
      expect((await ask(fromStart('q'))).get('q')).toBeLessThan(0);
    });
  });
});

describe.sequential('the plan', () => {
  let backend: Backend;
  const queues = Array.from({ length: 50 }, (_, n) => `q${n}`);
  const modes: PlanMode[] = ['force_custom_plan', 'force_generic_plan'];
  const looks = modes.flatMap((mode) =>
    [1, 50].flatMap((count) =>
      [false, true].map(
        (sweep) => [`${mode}, ${count} queues, sweep: ${sweep}`, mode, count, sweep] as const,
      ),
    ),
  );

  beforeAll(async () => {
    [backend] = await twoBackends(database);
    await clearTables(database.client);
    await database.client`alter table queue_jobs set (autovacuum_enabled = off)`;
  });

  /** One index range per queue and priority, of which one row is read. */
  async function expectRanges(
    mode: PlanMode,
    count: number,
    sweep: boolean,
    floorMs = Number.NEGATIVE_INFINITY,
  ) {
    const asked = queues.slice(0, count).map((queue) => ({ queue, floorMs, fromGoneWorkers: sweep }));
    const plan = await explain(backend, findDueQuery(tables, question(asked)), mode);
    const scans = nodesOf(plan).filter((node) => node['Relation Name'] === 'queue_jobs');
    expect(scans.map((node) => [node['Node Type'], node['Index Name']])).toEqual([
      ['Index Scan', 'queue_jobs_claim_idx'],
    ]);
    expect(scans[0]?.['Index Cond']).toMatch(
      /priority = .* AND \(queue = i\.queue\) AND \(run_at >= i\.floor\)/,
    );
    expect(scans[0]?.['Actual Loops']).toBe(10 * count);
    // Measured: 2 pages per range of an empty table, 3 or 4 of a million jobs.
    expect(buffersOf(plan)).toBeLessThanOrEqual(20 + 50 * count);
  }

  describe('of an empty table that was never analysed', () => {
    test.each(looks)('%s', (_, ...args) => expectRanges(...args));
  });

  describe('with 1,000,000 due jobs', () => {
    beforeAll(async () => {
      await fill('k', `now() - interval '1 day' + n * interval '1 ms'`);
    });

    test.each(looks)('%s', (_, ...args) => expectRanges(...args));
  });

  describe('with 1,000,000 due jobs of another kind, from the floor', () => {
    beforeAll(async () => {
      await database.client`truncate queue_jobs`;
      await fill('other', `now() - interval '1 day' + n * interval '1 ms'`);
    });

    test.each(looks.filter(([, , , sweep]) => !sweep))('%s', (_, ...args) =>
      expectRanges(...args, Date.now() - 1_000),
    );
  });

  describe('with 1,000,000 scheduled jobs', () => {
    beforeAll(async () => {
      await database.client`truncate queue_jobs`;
      await fill('k', `now() + interval '1 day' + n * interval '1 ms'`);
      await database.client`analyze queue_jobs`;
    });

    test.each(looks)('%s', (_, ...args) => expectRanges(...args));
  });

  async function fill(kind: string, runAt: string): Promise<void> {
    await database.client.unsafe(`
      insert into queue_jobs (queue, kind, payload, max_attempts, priority, run_at)
      select 'q' || n % 50, '${kind}', 'null', 20, n % 10, ${runAt} from generate_series(1, 1000000) as n`);
  }
});

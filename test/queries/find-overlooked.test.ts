import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { claimJobs } from '../../src/core/queries/claim/claim-jobs.ts';
import {
  type ClaimPlace,
  findOverlooked,
  findOverlookedQuery,
  type OverlookedLook,
  type Reach,
} from '../../src/core/queries/claim/find-overlooked.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, explain, nodesOf, type PlanMode } from './support/explain.ts';
import { addJobs, claimOf, clearTables, fillJobs, tables } from './support/jobs.ts';
import { type Backend, begin, rollback, twoBackends } from './support/locks.ts';

const database = useTestDatabase();
const passedTo = (floorMs: number, endMs = floorMs): Reach[] => new Array<Reach>(10).fill({ floorMs, endMs });
const EVERYTHING = passedTo(Number.POSITIVE_INFINITY);
const question = (looks: readonly OverlookedLook[], slice = 1_000) => ({
  looks,
  kinds: ['k'],
  workerId: 1,
  slice,
});
const look = (passed: readonly Reach[] = EVERYTHING, after?: ClaimPlace, queue = 'q') => ({
  queue,
  passed,
  after,
});
const sweep = (looks: readonly OverlookedLook[], slice?: number) =>
  findOverlooked(database.db, tables, question(looks, slice));
const idsOf = (places: readonly ClaimPlace[] | undefined) => (places ?? []).map(({ id }) => id);

describe('findOverlooked', () => {
  beforeEach(() => clearTables(database.client));

  test('finds due jobs before the floors that nobody holds, in claim order', async () => {
    const nowMs = Date.now();
    const [late, later, urgent] = await addJobs(database.client, [
      { dueInMs: -60_000 },
      { dueInMs: -59_000 },
      { dueInMs: -58_000, priority: 0 },
      { dueInMs: -10_000 },
      { dueInMs: -60_000, kind: 'other' },
      { dueInMs: -60_000, queue: 'other' },
      { dueInMs: 60_000 },
    ]);
    const { found, stopped } = await sweep([look(passedTo(nowMs - 30_000, nowMs + 120_000))]);
    expect([...found.keys()]).toEqual(['q']);
    expect(idsOf(found.get('q'))).toEqual([urgent, late, later]);
    expect(stopped).toBeUndefined();
  });

  test('finds jobs of workers that are gone up to where claims have come, but never its own', async () => {
    await database.client`insert into queue_workers (id, name, queues) overriding system value values (7, 'w', '[]')`;
    const nowMs = Date.now();
    const [behind, passed] = await addJobs(database.client, [
      { dueInMs: -60_000, workerId: 999 },
      { dueInMs: -20_000, workerId: 999 },
      { dueInMs: -5_000, workerId: 999 },
      { dueInMs: -60_000, workerId: 7 },
      { dueInMs: -60_000, workerId: 1 },
    ]);
    const { found } = await sweep([look(passedTo(nowMs - 30_000, nowMs - 10_000))]);
    expect(idsOf(found.get('q'))).toEqual([behind, passed]);
  });

  test('leaves out what became due long before the floor', async () => {
    const floorMs = Date.now() - 30_000;
    const [, near, urgent] = await addJobs(database.client, [
      { dueInMs: -95_000 },
      { dueInMs: -85_000 },
      { dueInMs: -86_000, priority: 0 },
    ]);
    const near60 = { ...look(passedTo(floorMs)), spanMs: 60_000 };
    expect(idsOf((await sweep([near60])).found.get('q'))).toEqual([urgent, near]);
    const { stopped } = await sweep([near60], 1);
    expect(stopped?.after.id).toBe(urgent);
    const rest = await sweep([{ ...near60, after: stopped?.after }]);
    expect(idsOf(rest.found.get('q'))).toEqual([near]);
  });

  test('goes slice by slice through all queues and priorities, and finds each job once', async () => {
    const jobs = Array.from({ length: 90 }, (_, n) => ({
      queue: n % 3 === 0 ? 'a' : 'b',
      // Many share a time, so that the id decides where a slice goes on.
      dueInMs: -60_000 - Math.floor(n / 20) * 1_000,
      priority: n % 4,
      kind: n % 5 === 0 ? 'other' : 'k',
    }));
    const ids = await addJobs(database.client, jobs);
    const found: number[] = [];
    let looks: OverlookedLook[] = [look(EVERYTHING, undefined, 'a'), look(EVERYTHING, undefined, 'b')];
    let slices = 0;
    for (; looks.length > 0; slices++) {
      const answer = await sweep(looks, 7);
      for (const places of answer.found.values()) found.push(...idsOf(places));
      const { stopped } = answer;
      const at = looks.findIndex(({ queue }) => queue === stopped?.queue);
      looks = stopped === undefined ? [] : looks.slice(at).map((left) => ({ ...left, after: undefined }));
      if (stopped !== undefined && looks[0] !== undefined) looks[0] = { ...looks[0], after: stopped.after };
    }
    expect(slices).toBe(13);
    expect(found.sort((a, b) => a - b)).toEqual(ids.filter((_, n) => n % 5 !== 0));
  });

  test('asks nothing where nothing was passed', async () => {
    await fillJobs(database.client, 3);
    const nobody = { execute: () => Promise.reject(new Error('asked')) };
    const answer = await findOverlooked(nobody, tables, question([look(passedTo(Number.NEGATIVE_INFINITY))]));
    expect(answer.found.size).toBe(0);
  });

  test('waits for nobody; a claim by id leaves alone what is locked, held or gone by then', async () => {
    const ids = await addJobs(database.client, [{}, {}, {}, {}]);
    const [one, two] = await twoBackends(database);
    await begin(one);
    await one.client`select from queue_jobs where id = ${ids[0]} for update`;
    const { found } = await findOverlooked(two.db, tables, question([look()]));
    expect(idsOf(found.get('q'))).toEqual(ids);
    await two.client`update queue_jobs set worker_id = 5 where id = ${ids[1]}`;
    await two.client`insert into queue_workers (id, name, queues) overriding system value values (5, 'w', '[]')`;
    await two.client`delete from queue_jobs where id = ${ids[2]}`;
    const claimed = await claimJobs(two.db, tables, claimOf({ ids, limit: 4, fromGoneWorkers: true }));
    expect(claimed.map(({ id }) => id)).toEqual([ids[3]]);
    await rollback(one);
  });

  test('two workers that found the same jobs share them', async () => {
    await fillJobs(database.client, 400);
    await database.client`
      insert into queue_workers (id, name, queues) overriding system value values (1, 'one', '[]'), (2, 'two', '[]')`;
    const { found } = await sweep([look()]);
    const ids = idsOf(found.get('q'));
    const [one, two] = await twoBackends(database);
    const claims = await Promise.all(
      [one, two].map(({ db }, index) =>
        claimJobs(db, tables, claimOf({ ids, limit: 400, workerId: index + 1, fromGoneWorkers: true })),
      ),
    );
    expect(claims.flat()).toHaveLength(400);
    expect(new Set(claims.flat().map(({ id }) => id)).size).toBe(400);
  });
});

describe.sequential('the plan', () => {
  let backend: Backend;
  const SLICE = 2_000;
  const modes: PlanMode[] = ['force_custom_plan', 'force_generic_plan'];

  beforeAll(async () => {
    [backend] = await twoBackends(database);
    // Without what the tests before have left dead.
    await database.client`truncate queue_jobs`;
    await database.client`alter table queue_jobs set (autovacuum_enabled = off)`;
  });

  async function expectSlice(mode: PlanMode, after: ClaimPlace | undefined, rows: number): Promise<void> {
    const kinds = Array.from({ length: 100 }, (_, n) => `kind ${n}`);
    const query = findOverlookedQuery(tables, { ...question([look(EVERYTHING, after)], SLICE), kinds });
    const plan = await explain(backend, query, mode);
    const scans = nodesOf(plan).filter((node) => node['Relation Name'] === 'queue_jobs');
    expect(scans.map((node) => [node['Node Type'], node['Index Name']])).toEqual([
      ['Index Scan', 'queue_jobs_claim_idx'],
    ]);
    const [scan] = scans;
    expect(scan?.['Index Cond']).toMatch(/ROW\(run_at, id\) > ROW\(i\.after, i\.after_id\)/);
    // Rows are told as an average of the loops.
    const read = (scan?.['Actual Rows'] ?? 0) * (scan?.['Actual Loops'] ?? 0);
    expect(Math.round(read)).toBe(rows);
    // Rows that were inserted in order share their pages.
    expect(buffersOf(plan)).toBeLessThanOrEqual(50 + rows / 10);
  }

  test.each(modes)('of an empty table that was never analysed, %s', async (mode) => {
    await expectSlice(mode, undefined, 0);
  });

  describe('beside 300,000 due jobs of other kinds', () => {
    beforeAll(() => fillJobs(database.client, 300_000));

    test.each(modes)('never analysed, %s', (mode) => expectSlice(mode, undefined, SLICE));

    test.each(modes)('from the middle, %s', async (mode) => {
      const [row] = await database.client<{ id: string; at: number }[]>`
        select id, date_part('epoch', run_at) * 1000 as at from queue_jobs order by id offset 150000 limit 1`;
      await expectSlice(mode, { priority: 5, runAtMs: row?.at ?? 0, id: Number(row?.id) }, SLICE);
    });

    test.each(modes)('analysed, %s', async (mode) => {
      await database.client`analyze queue_jobs`;
      await expectSlice(mode, undefined, SLICE);
    });
  });
});

import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Runner } from '../../../src/core/sql/executor.ts';
import type { Attempts } from '../../../src/core/worker/begin/attempts.ts';
import { admitGroups } from '../../../src/features/limits/queries/admit-groups.ts';
import { ClaimsByTurns } from '../../../src/features/limits/worker/claims-by-turns.ts';
import { addGrouped, addWorkers, clearGroups, groupedTables } from '../../queries/support/groups.ts';
import { addControlTables } from '../../support/control-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';

const database = useTestDatabase({ max: 4 });
beforeAll(() => addControlTables(database));
let workerId = 0;
beforeEach(async () => {
  await clearGroups(database.client);
  [workerId = 0] = await addWorkers(database.client);
});

function nameOf(query: Parameters<Runner['execute']>[0]): 'admission' | 'claim' | 'other' {
  const text = JSON.stringify(query, (key, value) => (key === 'table' ? undefined : value));
  return text.includes('with free as') ? 'admission' : text.includes('seen as') ? 'claim' : 'other';
}

/** The statements that run, by their first CTE, and whether another ran at the same time. */
function watched(failing: (name: string) => boolean) {
  const seen: { name: string; beside: boolean }[] = [];
  let running = 0;
  const runner: Runner = {
    async execute(query) {
      const name = nameOf(query);
      const one = { name, beside: running > 0 };
      seen.push(one);
      running++;
      try {
        if (failing(name)) throw new Error(`The ${name} failed`);
        return await database.db.execute(query);
      } finally {
        running--;
      }
    },
  };
  return { runner, seen };
}

function claimsOn(runner: Runner, concurrency = 1, demand = () => 200): ClaimsByTurns {
  return new ClaimsByTurns({
    runner,
    queue: 'q',
    workerId,
    kinds: ['k'],
    groups: { tables: groupedTables(), bounds: true, concurrency },
    gate: undefined,
    // All that claims ask of it.
    attempts: () => ({ demand: demand(), mostPerGroup: undefined }) as Attempts,
  });
}

const keys = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({ group: `key-${from + n}` }));

describe('admission', () => {
  test('runs before a claim, and beside those that follow one of many groups', async () => {
    await addGrouped(database.client, keys(0, 500));
    const { runner, seen } = watched(() => false);
    const claims = claimsOn(runner);
    const ids = new Set<number>();
    const counts: number[] = [];
    for (let goesOn = true; goesOn; ) {
      const answer = await claims.next(200, 0);
      for (const { id } of answer.jobs) ids.add(id);
      counts.push(answer.jobs.length);
      goesOn = answer.goesOn === true;
    }
    expect([counts, ids.size]).toEqual([[200, 200, 100], 500]);
    const statements = seen.filter(({ name }) => name !== 'other');
    expect(statements.map(({ name, beside }) => `${name}${beside ? ' beside' : ''}`)).toEqual([
      'admission',
      'claim',
      ...['admission', 'claim beside', 'claim beside', 'admission', 'claim beside', 'claim beside'],
    ]);
  });

  test('is all that is sent where the worker was stopped or the queue paused meanwhile', async () => {
    let demand = 200;
    const { runner, seen } = watched(() => false);
    const claims = claimsOn(
      {
        execute: async (query) => {
          demand = 0;
          return await runner.execute(query);
        },
      },
      1,
      () => demand,
    );
    expect(await claims.next(200, 0)).toMatchObject({ jobs: [], leftOut: true });
    expect(seen.map(({ name }) => name)).not.toContain('claim');
    expect(seen.length).toBeGreaterThan(0);
  });

  test('what was folded in beside a claim that it has not seen is claimed by the next', async () => {
    await addGrouped(database.client, keys(0, 200));
    const claims = claimsOn(database.db);
    expect((await claims.next(200, 0)).jobs).toHaveLength(200);
    await addGrouped(database.client, keys(200, 50));
    const beside = await claims.next(200, 0);
    expect([beside.goesOn, beside.sawEnd]).toEqual([true, false]);
    const after = beside.jobs.length === 50 ? [] : (await claims.next(200, 0)).jobs;
    expect(beside.jobs.length + after.length).toBe(50);
  });

  test.each([
    ['a group', 'select from queue_groups for update', false],
    ['a note', 'select from queue_notes where not admitted for update', false],
    ['a note of a new group', 'select from queue_notes where admitted for update', true],
  ])('has not seen all while another statement has locked %s', async (_, lock, isNew) => {
    await addGrouped(database.client, keys(0, 1));
    const claims = claimsOn(database.db, 2);
    expect((await claims.next(200, 0)).jobs).toHaveLength(1);
    await addGrouped(database.client, isNew ? keys(1, 1) : keys(0, 1));
    if (isNew) await admitGroups(database.db, groupedTables(), 'q');
    const other = await database.client.reserve();
    try {
      await other.unsafe('begin');
      await other.unsafe(lock);
      expect(await claims.next(200, 0)).toMatchObject({ jobs: [], sawEnd: false });
      await other.unsafe('commit');
    } finally {
      other.release();
    }
    expect(await claims.next(200, 0)).toMatchObject({ jobs: [{}], sawEnd: true });
  });

  test('one that fails beside a claim hides nothing of it; the next one tells', async () => {
    await addGrouped(database.client, keys(0, 600));
    let fails = false;
    const claims = claimsOn(watched((name) => fails && name === 'admission').runner);
    expect((await claims.next(200, 0)).jobs).toHaveLength(200);
    fails = true;
    const beside = await claims.next(200, 0);
    expect([beside.jobs.length, beside.goesOn]).toEqual([200, true]);
    await expect(claims.next(200, 0)).rejects.toThrow('The admission failed');
    fails = false;
    expect((await claims.next(200, 0)).jobs).toHaveLength(200);
  });
});

describe('two claims beside each other', () => {
  /** After a claim of many groups. */
  async function amongMany(runner: Runner, concurrency = 1): Promise<ClaimsByTurns> {
    const claims = claimsOn(runner, concurrency);
    expect((await claims.next(200, 0)).jobs).toHaveLength(200);
    return claims;
  }

  test('take other jobs each, as many as are asked for', async () => {
    await addGrouped(database.client, keys(0, 600));
    const claims = await amongMany(database.db);
    const { jobs } = await claims.next(201, 0);
    expect([jobs.length, new Set(jobs.map(({ id }) => id)).size]).toEqual([201, 201]);
    expect(await heldJobs()).toBe(401);
  });

  test('never take two jobs of a group with a limit of one', async () => {
    await addGrouped(database.client, [...keys(0, 400), ...keys(200, 200)]);
    const claims = await amongMany(database.db);
    const { jobs } = await claims.next(400, 0);
    const groups = jobs.map(({ group }) => group);
    expect(new Set(groups).size).toBe(groups.length);
    const [{ most } = { most: 0 }] = await database.client<{ most: number }[]>`
      select max(n)::int4 as most from (
        select count(*) as n from queue_jobs where worker_id is not null group by group_key
      ) as g`;
    expect(most).toBe(1);
  });

  test.each([2, 3])('one that fails takes nothing from the other: the claim number %i', async (failing) => {
    await addGrouped(database.client, keys(0, 600));
    let claimed = 0;
    const { runner, seen } = watched((name) => name === 'claim' && ++claimed === failing);
    const claims = await amongMany(runner);
    const { jobs, failure, sawEnd } = await claims.next(400, 0);
    expect([jobs.length, sawEnd]).toEqual([200, false]);
    expect(failure).toEqual(new Error('The claim failed'));
    expect(await heldJobs()).toBe(400);
    // The next one is alone.
    const next = await claims.next(400, 0);
    expect([next.jobs.length, next.failure]).toEqual([200, undefined]);
    expect(seen.filter(({ name }) => name === 'claim')).toHaveLength(4);
  });

  test('fail where neither has brought a job', async () => {
    await addGrouped(database.client, keys(0, 600));
    let fails = false;
    const claims = await amongMany(watched((name) => fails && name === 'claim').runner);
    fails = true;
    await expect(claims.next(400, 0)).rejects.toThrow('The claim failed');
  });

  test('begin no job whose attempt a crash must not spend: it waits behind others', async () => {
    await addGrouped(
      database.client,
      keys(0, 600).map((job) => ({ ...job, maxAttempts: 1 })),
    );
    const { jobs } = await (await amongMany(database.db)).next(400, 1);
    expect(jobs.length).toBeGreaterThan(200);
    expect(jobs.filter(({ begun }) => begun)).toEqual([]);
  });

  test('bring the jobs of a group in their order, whichever of them comes first', async () => {
    await addGrouped(database.client, [...keys(0, 300), ...keys(0, 300), ...keys(0, 300)]);
    let claims = 0;
    let tellOther: () => void = () => undefined;
    const other = new Promise<void>((resolve) => {
      tellOther = resolve;
    });
    const runner: Runner = {
      async execute(query) {
        const nth = nameOf(query) === 'claim' ? ++claims : 0;
        if (nth === 2) await other;
        const rows = await database.db.execute(query);
        if (nth === 3) tellOther();
        return rows;
      },
    };
    const { jobs } = await (await amongMany(runner, 10)).next(400, 0);
    const ofGroup = new Map<string, number[]>();
    for (const { group = '', id } of jobs) ofGroup.set(group, [...(ofGroup.get(group) ?? []), id]);
    expect([jobs.length, ofGroup.size]).toEqual([400, 300]);
    for (const ids of ofGroup.values()) expect(ids).toEqual(ids.toSorted((a, b) => a - b));
  });

  async function heldJobs(): Promise<number> {
    const [{ held } = { held: 0 }] = await database.client<{ held: number }[]>`
      select count(*)::int4 as held from queue_jobs where worker_id is not null`;
    return held;
  }
});

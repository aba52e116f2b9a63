import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Runner } from '../../../src/core/sql/executor.ts';
import { admitGroups } from '../../../src/features/limits/queries/admit-groups.ts';
import { ClaimsByTurns } from '../../../src/features/limits/worker/claims-by-turns.ts';
import { addGrouped, addWorkers, clearGroups, groupedTables } from '../../queries/support/groups.ts';
import { addJobs } from '../../queries/support/jobs.ts';
import { addControlTables } from '../../support/control-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { demandFor, nextClaim } from '../support/next-claim.ts';

const database = useTestDatabase({ max: 4 });
beforeAll(() => addControlTables(database));
let workerId = 0;
beforeEach(async () => {
  await clearGroups(database.client);
  [workerId = 0] = await addWorkers(database.client);
});

function nameOf(query: Parameters<Runner['execute']>[0]): 'admission' | 'claim' | 'other' {
  const text = JSON.stringify(query, (key, value) => (key === 'table' ? undefined : value));
  return text.includes('seen as') ? 'claim' : text.includes('with free as') ? 'admission' : 'other';
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

function claimsOn(runner: Runner, concurrency = 1, demand = demandFor(200, 0)): ClaimsByTurns {
  return new ClaimsByTurns({
    runner,
    queue: 'q',
    workerId,
    kinds: ['k'],
    tables: groupedTables(),
    settings: { concurrency },
    gate: undefined,
    demand,
    seekFreed: () => {},
    until: 'stopped',
  });
}

const keys = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({ group: `key-${from + n}` }));

describe('notes', () => {
  async function note(times: number, group: string): Promise<void> {
    await database.client`
      insert into queue_notes (queue, due_at, group_keys)
      select 'q', clock_timestamp(), array[${group}] from generate_series(1, ${times}::int4)`;
  }

  /** The statements of a claim, and how many jobs it brought. */
  function claiming(concurrency = 1) {
    const { runner, seen } = watched(() => false);
    const demand = demandFor(200, 0);
    const claims = claimsOn(runner, concurrency, demand);
    const next = async (most: number) => {
      seen.length = 0;
      demand.size = most;
      const answer = await nextClaim(claims);
      const statements = seen.filter(({ name }) => name !== 'other');
      return {
        ...answer,
        groups: answer.jobs.map(({ group }) => group),
        sent: statements.map(({ name, beside }) => `${name}${beside ? ' beside' : ''}`),
      };
    };
    return { seen, next, demand };
  }

  test('are used by the claims themselves, also by those beside each other', async () => {
    await addGrouped(database.client, keys(0, 500));
    const { next } = claiming();
    const answers = [await next(200), await next(200), await next(200)];
    expect(answers.map(({ jobs, sent }) => [jobs.length, ...sent])).toEqual([
      [200, 'claim'],
      [200, 'claim', 'claim beside'],
      [100, 'claim', 'claim beside'],
    ]);
    expect(new Set(answers.flatMap(({ jobs }) => jobs.map(({ id }) => id))).size).toBe(500);
    expect(await database.client`select from queue_notes`).toHaveLength(0);
  });

  test('that repeat a group are folded in before the next claim, and others come in its turn', async () => {
    await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }, { group: 'a' }]);
    await note(5_000, 'a');
    await addGrouped(database.client, [{ group: 'b' }]);
    const { next } = claiming(3);
    expect(await next(1)).toMatchObject({ groups: ['a'], sent: ['claim'] });
    expect(await next(1)).toMatchObject({ groups: ['b'], sent: ['admission', 'admission', 'claim'] });
    expect(await next(1)).toMatchObject({ groups: ['a'], sent: ['claim'] });
  });

  test('that small claims leave are folded in before the next but one', async () => {
    await addGrouped(database.client, keys(0, 100));
    const { next } = claiming();
    const sent = [await next(1), await next(1), await next(1), await next(1)].map((answer) => answer.sent);
    expect(sent).toEqual([['claim'], ['claim'], ['admission', 'claim'], ['claim']]);
    expect(await database.client`select from queue_notes`).toHaveLength(0);
  });

  test('that large claims do not use are folded in before the next', async () => {
    await addGrouped(database.client, keys(0, 300));
    // Their groups are in the ring, behind others.
    await database.client`
      insert into queue_groups (queue, group_key, ready_at, turn)
      select 'q', 'key-' || n, '-infinity'::timestamptz, 1000 from generate_series(0, 299) as n
      union all select 'q', 'first-' || n, '-infinity', 1 from generate_series(1, 400) as n`;
    const { next } = claiming();
    expect(await next(150)).toMatchObject({ sent: ['claim'] });
    expect((await next(150)).sent).toEqual(['admission', 'claim']);
  });

  test('are all that is folded in where the worker was stopped or the queue paused meanwhile', async () => {
    await addGrouped(database.client, keys(0, 100));
    const { next, demand } = claiming();
    await next(1);
    await next(1);
    const third = next(1);
    demand.size = 0;
    expect(await third).toMatchObject({ jobs: [], leftOut: true, sent: ['admission'] });
  });

  test.each([
    ['a group', 'select from queue_groups for update', false],
    ['a note', 'select from queue_notes for update', false],
    ['a note of a new group', 'select from queue_notes for update', true],
  ])('are not all seen while another statement has locked %s', async (_, lock, isNew) => {
    await addGrouped(database.client, keys(0, 1));
    const claims = claimsOn(database.db, 2);
    expect((await nextClaim(claims)).jobs).toHaveLength(1);
    await addGrouped(database.client, isNew ? keys(1, 1) : keys(0, 1));
    const other = await database.client.reserve();
    try {
      await other.unsafe('begin');
      await other.unsafe(lock);
      expect(await nextClaim(claims)).toMatchObject({ jobs: [], sawEnd: false, goesOn: false });
      await other.unsafe('commit');
    } finally {
      other.release();
    }
    expect(await nextClaim(claims)).toMatchObject({ jobs: [{}], sawEnd: true });
  });

  test('in which nothing is due are used up', async () => {
    await addGrouped(database.client, keys(0, 1));
    const { next } = claiming();
    await next(200);
    await note(1, 'key-0');
    const [before] = await database.client`select turn from queue_groups`;
    expect(await next(200)).toMatchObject({ groups: [], sawEnd: true });
    expect(await database.client`select from queue_notes`).toHaveLength(0);
    expect(await database.client`select turn from queue_groups`).toEqual([before]);
  });

  test('of some groups stay for those that a claim has no room for', async () => {
    await addGrouped(database.client, keys(0, 12));
    const { next } = claiming();
    const { groups } = await next(4);
    const [row] = await database.client<{ left: string[] }[]>`
      select array_agg(k) as left from queue_notes cross join unnest(group_keys) as k`;
    expect([...groups, ...(row?.left ?? [])].toSorted()).toEqual(
      keys(0, 12)
        .map(({ group }) => group)
        .toSorted(),
    );
    expect(row?.left).toHaveLength(8);
  });
});

describe('two claims beside each other', () => {
  /** After a claim of many groups there is use for twice as many jobs. */
  async function amongMany(
    runner: Runner,
    { concurrency = 1, next = demandFor(400, 0) } = {},
  ): Promise<ClaimsByTurns> {
    const demand = { ...next, size: 200 };
    const claims = claimsOn(runner, concurrency, demand);
    expect((await nextClaim(claims)).jobs).toHaveLength(200);
    demand.size = next.size;
    return claims;
  }

  test('take other jobs each, as many as are asked for', async () => {
    await addGrouped(database.client, keys(0, 600));
    const claims = await amongMany(database.db, { next: demandFor(201, 0) });
    const { jobs } = await nextClaim(claims);
    expect([jobs.length, new Set(jobs.map(({ id }) => id)).size]).toEqual([201, 201]);
    expect(await heldJobs()).toBe(401);
  });

  test('never take two jobs of a group with a limit of one', async () => {
    await addGrouped(database.client, [...keys(0, 400), ...keys(200, 200)]);
    const claims = await amongMany(database.db);
    const { jobs } = await nextClaim(claims);
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
    const { jobs, failure, sawEnd } = await nextClaim(claims);
    expect([jobs.length, sawEnd]).toEqual([200, false]);
    expect(failure).toEqual(new Error('The claim failed'));
    expect(await heldJobs()).toBe(400);
    // The next one is alone.
    const next = await nextClaim(claims);
    expect([next.jobs.length, next.failure]).toEqual([200, undefined]);
    expect(seen.filter(({ name }) => name === 'claim')).toHaveLength(4);
  });

  test('fail where neither has brought a job', async () => {
    await addGrouped(database.client, keys(0, 600));
    let fails = false;
    const claims = await amongMany(watched((name) => fails && name === 'claim').runner);
    fails = true;
    await expect(nextClaim(claims)).rejects.toThrow('The claim failed');
  });

  test('begin no job whose attempt a crash must not spend: it waits behind others', async () => {
    await addGrouped(
      database.client,
      keys(0, 600).map((job) => ({ ...job, maxAttempts: 1 })),
    );
    const { jobs } = await nextClaim(await amongMany(database.db, { next: demandFor(400, 1) }));
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
    const { jobs } = await nextClaim(await amongMany(runner, { concurrency: 10 }));
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

describe('where more groups than one claim passes have nothing for it', () => {
  beforeEach(async () => {
    const others = await addJobs(
      database.client,
      Array.from({ length: 15_000 }, () => ({ kind: 'other' })),
    );
    await database.client`
      with turns as (
        update queue_jobs set group_key = 'key-' || (id - ${others[0] ?? 0}) returning group_key, id
      )
      insert into queue_groups (queue, group_key, ready_at, turn)
      select 'q', group_key, '-infinity', id - ${others[0] ?? 0} from turns`;
  });

  test('the last claim that passes them says that nothing is left', async () => {
    const claims = claimsOn(database.db);
    for (const _ of ['once', 'and again']) {
      // It first looks at some, and then seeks among the first of them.
      expect(await nextClaim(claims)).toMatchObject({ jobs: [], sawEnd: false, goesOn: true });
      expect(await nextClaim(claims)).toMatchObject({ jobs: [], sawEnd: false, goesOn: false });
      expect(await nextClaim(claims)).toMatchObject({ jobs: [], sawEnd: true, goesOn: false });
    }
  });

  test('a claim that fails behind the first of them is followed by one that looks at these', async () => {
    let fails = false;
    const claims = claimsOn(watched((name) => fails && name === 'claim').runner);
    expect(await nextClaim(claims)).toMatchObject({ jobs: [], goesOn: true });
    expect(await nextClaim(claims)).toMatchObject({ jobs: [], sawEnd: false, goesOn: false });
    await database.client`
      update queue_jobs set kind = 'k' where group_key = (select group_key from queue_groups order by turn limit 1)`;
    fails = true;
    await expect(nextClaim(claims)).rejects.toThrow('The claim failed');
    fails = false;
    expect(await nextClaim(claims)).toMatchObject({ jobs: [{ kind: 'k' }] });
  });

  test('and not if a job was told of meanwhile, which may be among the groups that it has passed', async () => {
    const claims = claimsOn(database.db);
    expect(await nextClaim(claims)).toMatchObject({ jobs: [], goesOn: true });
    expect(await nextClaim(claims)).toMatchObject({ jobs: [], sawEnd: false, goesOn: false });
    await addGrouped(database.client, [{ group: 'key-5000' }]);
    // Another worker folds the note in.
    while ((await admitGroups(database.db, groupedTables(), 'q')) > 0);
    claims.noteTold();
    expect(await nextClaim(claims)).toMatchObject({ jobs: [], sawEnd: false });
    const claimed = await until(async () => {
      const { jobs } = await nextClaim(claims);
      return jobs.length > 0 && jobs;
    });
    expect(claimed).toMatchObject([{ group: 'key-5000' }]);
  });
});

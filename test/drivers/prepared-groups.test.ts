import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Runner } from '../../src/core/sql/executor.ts';
import type { TableSize } from '../../src/core/sql/table-size.ts';
import { Statements } from '../../src/core/worker/statements/statements.ts';
import { admitGroups } from '../../src/features/limits/queries/admit-groups.ts';
import {
  claimGroupsByKeptPlan,
  FEW,
  type GroupClaimResult,
} from '../../src/features/limits/queries/claim-grouped-jobs.ts';
import {
  addGrouped,
  addWorkers,
  clearGroups,
  groupClaimOf,
  groupedTables,
} from '../queries/support/groups.ts';
import { fillJobs } from '../queries/support/jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { demandFor, nextClaim } from '../worker/support/next-claim.ts';

const database = useTestDatabase({ max: 1 });
const tables = groupedTables();
const TABLES = ['queue_jobs', 'queue_groups', 'queue_notes', 'queue_holds', 'queue_limits'];
let workerId = 0;

beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await clearGroups(database.client);
  [workerId = 0] = await addWorkers(database.client);
  for (const table of TABLES) {
    await database.client.unsafe(`alter table ${table} set (autovacuum_enabled = off)`);
    // A vacuum may leave a table as large as it was.
    await database.client.unsafe(`truncate ${table}`);
    await database.client.unsafe(`vacuum analyze ${table}`);
  }
});

/** Runs statements as a worker runs its hot ones. */
function preparing() {
  return new Statements({
    db: database.db,
    open: undefined,
    onRefused: () => expect.unreachable(),
    onPoolEnded: () => undefined,
  }).of('claims', { prepared: true });
}

const keys = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => ({ group: `key-${from + n}` }));

/** How often such a claim ran by a plan that was kept. */
async function keptPlans(size: TableSize): Promise<number> {
  const [row] = await database.client<{ times: number }[]>`
    select sum(generic_plans)::int4 as times from pg_prepared_statements
    where statement ~ '^\\s*with table_size' and statement like ${`% as ${size},%`}`;
  return row?.times ?? 0;
}

/** The rows of the jobs and of the groups that this session has read by whole tables. */
async function readRows(): Promise<unknown> {
  return await database.client`
    select pg_stat_get_xact_tuples_returned('queue_jobs'::regclass)::int4 as jobs,
      pg_stat_get_xact_tuples_returned('queue_groups'::regclass)::int4 as groups`;
}

/** The claim of a few jobs, where it claims. */
async function claimFew(db: Runner, size: TableSize): Promise<GroupClaimResult> {
  const answer = await claimGroupsByKeptPlan(db, tables, groupClaimOf(workerId, { limit: 100 }), size);
  if (!('jobs' in answer)) expect.fail(`no table is ${size}`);
  return answer;
}

/** More than 512 kB of jobs of another queue. */
const grow = () => fillJobs(database.client, 20_000);

describe.each(['small', 'grown'] as const)('claims of few jobs in tables that are %s', (size) => {
  const other = size === 'small' ? 'grown' : 'small';
  beforeEach(async () => {
    if (size === 'grown') await grow();
  });

  test('keep their plan', async () => {
    const db = preparing();
    for (let times = 0; times < 20; times++) {
      const { jobs, signs } = await claimFew(db, size);
      expect([jobs, signs.has('more')]).toEqual([[], false]);
    }
    expect(await keptPlans(size)).toBeGreaterThanOrEqual(14);

    await addGrouped(database.client, [...keys(0, FEW[size] + 4), ...keys(0, 2)]);
    const ids: number[] = [];
    for (let goesOn = true; goesOn; ) {
      const { jobs, signs } = await claimFew(db, size);
      expect(new Set(jobs.map(({ group }) => group)).size).toBeLessThanOrEqual(FEW[size]);
      ids.push(...jobs.map(({ id }) => id));
      goesOn = signs.has('more') || signs.has('left');
    }
    expect([ids.length, new Set(ids).size]).toEqual([FEW[size] + 6, FEW[size] + 6]);
    expect(await database.client`select from queue_notes`).toHaveLength(0);
  });

  test('keep it also while many jobs are due', async () => {
    const db = preparing();
    await addGrouped(database.client, keys(0, 500));
    const before = await keptPlans(size);
    for (let times = 0; times < 20; times++) {
      // Groups of which the last claim took the only job have their turn as well.
      expect((await claimFew(db, size)).jobs.length).toBeGreaterThanOrEqual(FEW[size] / 2);
    }
    expect((await keptPlans(size)) - before).toBeGreaterThanOrEqual(14);
  });

  test('bring as many jobs as are asked for, where those are found by an index', async () => {
    await addGrouped(
      database.client,
      Array.from({ length: 300 }, (_, n) => ({ group: `key-${n % 3}` })),
    );
    const { jobs } = await claimFew(preparing(), size);
    expect(jobs).toHaveLength(size === 'small' ? FEW.small : 100);
  });

  test('claim nothing where that of the jobs is of another size', async () => {
    const db = preparing();
    await addGrouped(database.client, keys(0, 1));
    await database.client.unsafe('begin');
    const before = await readRows();
    const answer = await claimGroupsByKeptPlan(db, tables, groupClaimOf(workerId), other);
    expect(answer).toEqual({ areJobsSmall: size === 'small' });
    expect(await readRows()).toEqual(before);
    await database.client.unsafe('rollback');
    expect((await claimFew(db, size)).jobs).toHaveLength(1);
  });

  test.each(TABLES.slice(1))('claim nothing where %s is large', async (table) => {
    const { client } = database;
    await addGrouped(client, keys(0, 1));
    await client.unsafe('begin');
    if (table === 'queue_groups') {
      await client`insert into queue_groups (queue, group_key, ready_at) select 'r', n, 'infinity' from generate_series(1, 20000) as n`;
    } else if (table === 'queue_notes') {
      await client`
        insert into queue_notes (queue, due_at, group_keys) select 'r', now(), array['g'] from generate_series(1, 20000)`;
    } else if (table === 'queue_holds') {
      await client`
        insert into queue_holds (queue, group_key, job_id, until) select 'r', 'g', n, now() from generate_series(1, 20000) as n`;
    } else {
      await client`
        insert into queue_limits (queue, kind, group_key, concurrency) select 'r', '', n, 1 from generate_series(1, 20000) as n`;
    }
    expect(await claimGroupsByKeptPlan(database.db, tables, groupClaimOf(workerId), size)).toEqual({
      areJobsSmall: size === 'small',
    });
    await client.unsafe('rollback');
  });
});

/** Claims as a worker makes them: each answers how many jobs it brought, and by which statements. */
async function claiming() {
  const runner = preparing();
  // Afresh: another test of this process may have made this table smaller.
  vi.resetModules();
  const fresh = await import('../../src/features/limits/worker/claims-by-turns.ts');
  const seen: string[] = [];
  const claims = new fresh.ClaimsByTurns({
    runner: {
      prepares: true,
      execute: async (query) => {
        const text = JSON.stringify(query, (key, value) => (key === 'table' ? undefined : value));
        const other = text.includes('free as') ? 'admission' : 'noted';
        const name = text.includes('seen as') ? 'claim' : other;
        const size = (['small', 'grown'] as const).find((each) => text.includes(`t.${each} from table_size`));
        seen.push(size === undefined ? name : `${size} ${name}`);
        return await runner.execute(query);
      },
    },
    queue: 'q',
    workerId,
    kinds: ['k'],
    tables,
    settings: {},
    gate: undefined,
    demand: demandFor(100, 0),
    seekFreed: () => {},
    until: 'stopped',
  });
  const next = async () => {
    seen.length = 0;
    const { jobs, goesOn } = await nextClaim(claims);
    return [jobs.length, ...seen.filter((name) => !name.includes('noted')), ...(goesOn ? ['goes on'] : [])];
  };
  return next;
}

test('a worker claims by them while it claims few jobs, and as before where many come or a table is large', async () => {
  const next = await claiming();
  await next();
  expect(await next()).toEqual([0, 'small claim']);
  await addGrouped(database.client, keys(0, 3));
  expect(await next()).toEqual([3, 'small claim']);
  await addGrouped(database.client, keys(0, 40));
  expect(await next()).toEqual([FEW.small, 'small claim', 'goes on']);
  expect(await next()).toEqual([40 - FEW.small, 'claim']);
  expect(await next()).toEqual([0, 'claim']);
  expect(await next()).toEqual([0, 'small claim']);
  await grow();
  await addGrouped(database.client, keys(0, 1));
  expect(await next()).toEqual([1, 'small claim', 'grown claim']);
  expect(await next()).toEqual([0, 'grown claim']);
  await addGrouped(database.client, [...keys(0, FEW.grown - 1), ...keys(0, 4)]);
  expect(await next()).toEqual([FEW.grown + 3, 'grown claim']);
  await addGrouped(database.client, keys(0, FEW.grown + 1));
  expect(await next()).toEqual([FEW.grown, 'grown claim', 'goes on']);
  // It has met as many groups as it may.
  expect(await next()).toEqual([1, 'claim']);
  expect(await next()).toEqual([0, 'grown claim']);
  await database.client`
    insert into queue_limits (queue, kind, group_key, concurrency) select 'r', '', n, 1 from generate_series(1, 20000) as n`;
  await addGrouped(database.client, keys(0, 1));
  expect(await next()).toEqual([1, 'grown claim', 'claim']);
  expect(await next()).toEqual([0, 'claim']);
});

test('where the groups of such a claim have nothing for it, the next one looks at more', async () => {
  await addGrouped(
    database.client,
    Array.from({ length: 40 }, (_, n) => ({ group: `other-${n}`, kind: 'other' })),
  );
  await addGrouped(database.client, keys(0, 1));
  await admitGroups(database.db, tables, 'q');
  const next = await claiming();
  expect(await next()).toEqual([0, 'small claim', 'goes on']);
  expect(await next()).toEqual([1, 'claim']);
});

test('where many groups stand beside few jobs, nothing is taken for grown or shrunk', async () => {
  const next = await claiming();
  await database.client`
    insert into queue_groups (queue, group_key, ready_at)
    select 'r', n, 'infinity' from generate_series(1, 20000) as n`;
  await addGrouped(database.client, keys(0, 3));
  expect(await next()).toEqual([3, 'small claim', 'claim']);
  await database.client`truncate queue_groups`;
  const { KeptPlans } = await import('../../src/core/worker/statements/kept-plans.ts');
  const others = new KeptPlans({ runner: { prepares: true }, tables });
  others.noteOther('small');
  expect(others.size).toBe('grown');
});

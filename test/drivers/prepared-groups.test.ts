import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { Attempts } from '../../src/core/worker/begin/attempts.ts';
import { Statements } from '../../src/core/worker/statements/statements.ts';
import { claimFewOfGroups, FEW } from '../../src/features/limits/queries/claim-grouped-jobs.ts';
import { ClaimsByTurns } from '../../src/features/limits/worker/claims-by-turns.ts';
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

async function plans(): Promise<{ statement: string; generic_plans: string }[]> {
  return await database.client`
    select statement, generic_plans from pg_prepared_statements where statement ~ '^\\s*with table_size'`;
}

/** The rows of the jobs and of the groups that this session has read by whole tables. */
async function readRows(): Promise<unknown> {
  return await database.client`
    select pg_stat_get_xact_tuples_returned('queue_jobs'::regclass)::int4 as jobs,
      pg_stat_get_xact_tuples_returned('queue_groups'::regclass)::int4 as groups`;
}

test('claims of few jobs keep their plan in small tables, and do nothing in a large one', async () => {
  const db = preparing();
  const claim = () => claimFewOfGroups(db, tables, groupClaimOf(workerId, { limit: 100 }));
  for (let times = 0; times < 20; times++) expect(await claim()).toMatchObject({ jobs: [], more: false });
  const kept = await plans();
  expect(kept).toHaveLength(1);
  expect(Number(kept[0]?.generic_plans)).toBeGreaterThanOrEqual(14);

  await addGrouped(database.client, [...keys(0, FEW + 4), ...keys(0, 2)]);
  const ids: number[] = [];
  for (let goesOn = true; goesOn; ) {
    const answer = await claim();
    expect(answer?.jobs.length).toBeLessThanOrEqual(FEW);
    ids.push(...(answer?.jobs ?? []).map(({ id }) => id));
    goesOn = answer?.more === true || answer?.left === true;
  }
  expect([ids.length, new Set(ids).size]).toEqual([FEW + 6, FEW + 6]);
  expect(await database.client`select from queue_notes`).toHaveLength(0);

  await fillJobs(database.client, 20_000);
  await addGrouped(database.client, keys(0, 1));
  await database.client.unsafe('begin');
  const before = await readRows();
  expect(await claim()).toBeUndefined();
  expect(await readRows()).toEqual(before);
  await database.client.unsafe('rollback');
});

test.each(TABLES)('they do nothing where %s is large', async (table) => {
  const { client } = database;
  await addGrouped(client, keys(0, 1));
  expect(await claimFewOfGroups(database.db, tables, groupClaimOf(workerId))).toMatchObject({ jobs: [{}] });
  await client.unsafe('begin');
  if (table === 'queue_jobs') await fillJobs(client, 5_000);
  else if (table === 'queue_groups') {
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
  expect(await claimFewOfGroups(database.db, tables, groupClaimOf(workerId))).toBeUndefined();
  await client.unsafe('rollback');
});

test('a worker claims by them while it claims few jobs, and as before where many come or a table is large', async () => {
  const runner = preparing();
  const seen: string[] = [];
  const claims = new ClaimsByTurns({
    runner: {
      prepares: true,
      execute: async (query) => {
        const text = JSON.stringify(query, (key, value) => (key === 'table' ? undefined : value));
        const name = text.includes('seen as') ? 'claim' : 'admission';
        seen.push(text.includes('with table_size') ? `small ${name}` : name);
        return await runner.execute(query);
      },
    },
    queue: 'q',
    workerId,
    kinds: ['k'],
    groups: { tables, bounds: false },
    gate: undefined,
    // All that claims ask of it.
    attempts: () => ({ demand: 100, mostPerGroup: undefined }) as Attempts,
  });
  const next = async () => {
    seen.length = 0;
    const { jobs } = await claims.next(100, 0);
    return [jobs.length, ...seen.filter((name) => !name.includes('noted'))];
  };
  await next();
  expect(await next()).toEqual([0, 'small claim']);
  await addGrouped(database.client, keys(0, 3));
  expect(await next()).toEqual([3, 'small claim']);
  await addGrouped(database.client, keys(0, 40));
  expect(await next()).toEqual([FEW, 'small claim']);
  expect(await next()).toEqual([40 - FEW, 'claim']);
  expect(await next()).toEqual([0, 'claim']);
  expect(await next()).toEqual([0, 'small claim']);
  await fillJobs(database.client, 20_000);
  await addGrouped(database.client, keys(0, 1));
  expect(await next()).toEqual([1, 'small claim', 'claim']);
  expect(await next()).toEqual([0, 'claim']);
});

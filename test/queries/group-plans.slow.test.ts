import type { SQL } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { insertJobsQuery } from '../../src/core/queries/enqueue/insert-jobs.ts';
import { releaseJobsQuery } from '../../src/core/queries/hold/release-jobs.ts';
import { redriveJobsQuery } from '../../src/core/queries/operate/redrive-jobs.ts';
import { finishJobs, finishJobsQuery } from '../../src/core/queries/settle/finish-jobs.ts';
import { rescheduleJobsQuery } from '../../src/core/queries/settle/reschedule-jobs.ts';
import { admitGroups, admitGroupsQuery } from '../../src/features/limits/queries/admit-groups.ts';
import { adoptJobsQuery } from '../../src/features/limits/queries/adopt-jobs.ts';
import {
  claimGroupedJobs,
  claimGroupedJobsQuery,
} from '../../src/features/limits/queries/claim-grouped-jobs.ts';
import { endHandlerHoldsQuery } from '../../src/features/limits/queries/end-handler-holds.ts';
import { findDueGroupsQuery } from '../../src/features/limits/queries/find-due-groups.ts';
import { findGroupedDueIdsQuery } from '../../src/features/limits/queries/find-grouped-due-ids.ts';
import { findGroupsQuery } from '../../src/features/limits/queries/find-groups.ts';
import { findPlainJobsQuery } from '../../src/features/limits/queries/find-plain-jobs.ts';
import { findStoppedGroupsQuery } from '../../src/features/limits/queries/find-stopped-groups.ts';
import {
  noteForgottenGroupsQuery,
  noteFreedGroups,
  noteFreedGroupsQuery,
} from '../../src/features/limits/queries/note-groups.ts';
import { pruneGroups, pruneGroupsQuery } from '../../src/features/limits/queries/prune-groups.ts';
import { setLimitQuery } from '../../src/features/limits/queries/set-limit.ts';
import { unblockGroupQuery } from '../../src/features/limits/queries/unblock-group.ts';
import type { ClaimLimits, GroupClaim } from '../../src/features/limits/sql/group-claim.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, explain, nodesOf, type PlanNode } from './support/explain.ts';
import { addWorkers, groupClaimOf, groupedTables } from './support/groups.ts';
import { type Backend, twoBackends } from './support/locks.ts';
import { isPlannedAnew } from './support/looks.ts';

const database = useTestDatabase();
let backend: Backend;
let worker = 0;

beforeAll(async () => {
  await addControlTables(database);
  [backend] = await twoBackends(database);
  // Statistics are gathered when a test says so.
  for (const table of ['queue_jobs', 'queue_groups', 'queue_holds', 'queue_notes']) {
    await database.client.unsafe(`alter table ${table} set (autovacuum_enabled = off)`);
  }
});

const MILLION = 1_000_000;
const tables = groupedTables();
const serial = groupedTables('end');

/** Jobs with what an enqueue notes; `n` is the number of the job. */
async function fill(count: number, group: string, runAt = 'now()', priority = '5'): Promise<void> {
  await database.client.unsafe(`
    with inserted as (
      insert into queue_jobs (queue, kind, payload, max_attempts, group_key, run_at, priority)
      select 'q', 'k', '{"orderId": 1}', 20, ${group}, ${runAt}, ${priority} from generate_series(1, ${count}) as n
      returning group_key, run_at
    )
    insert into queue_notes (queue, due_at, group_keys)
    select 'q', due_at, array_agg(group_key) from (
      select g.*, row_number() over () / 20 as part
      from (select min(run_at) as due_at, group_key from inserted group by group_key) as g
    ) as g
    group by due_at, part`);
}

async function empty(): Promise<void> {
  await database.client.unsafe(
    'truncate queue_jobs, queue_groups, queue_holds, queue_notes, queue_workers, queue_results',
  );
  // A table that is emptied keeps what the last ANALYZE saw of its values.
  await database.client`
    delete from pg_statistic where starelid = any(array['queue_jobs', 'queue_groups', 'queue_holds', 'queue_notes',
      'queue_workers', 'queue_results']::regclass[])`;
  [worker = 0] = await addWorkers(database.client);
}

/** More rows than this take more pages than an index does. */
const FEW_ROWS = 15_000;

/**
 * Carries the statement out, and takes it back: planned for these values, and for any unless it is always planned anew. Only a table with
 * few rows may be read from end to end.
 */
async function plansOf(query: SQL): Promise<PlanNode[]> {
  const modes = isPlannedAnew(query)
    ? (['force_custom_plan'] as const)
    : (['force_custom_plan', 'force_generic_plan'] as const);
  const plans: PlanNode[] = [];
  for (const mode of modes) plans.push(await explain(backend, query, mode));
  return plans;
}

async function expectBuffers(query: SQL, most: number): Promise<void> {
  for (const plan of await plansOf(query)) {
    const whole = nodesOf(plan).filter(
      (node) => node['Node Type'] === 'Seq Scan' && node['Actual Rows'] > FEW_ROWS,
    );
    expect(whole.map((node) => [node['Relation Name'], node['Actual Rows']])).toEqual([]);
    expect(buffersOf(plan)).toBeLessThanOrEqual(most);
  }
}

/** How many pages a statement touches, as it is planned. */
async function pagesOf(query: SQL): Promise<number[]> {
  return (await plansOf(query)).map(buffersOf);
}

/** Of one that reads all groups, whatever it is to find. */
async function expectBuffersOfAll(query: SQL, most: number): Promise<void> {
  expect(Math.max(...(await pagesOf(query)))).toBeLessThanOrEqual(most);
}

const LIMITS = [1, 20, 200] as const;
/** Each way to claim: shares alone, at most two of a group, one after the other. */
const WAYS = [
  ['shares', {}],
  ['two at once', { concurrency: 2 }],
  ['one after the other', { run: 50 }],
] as const;
const claims = WAYS.flatMap(([way, limits]) => LIMITS.map((limit) => [way, limit, limits] as const));

/** Each of the statements, in the state that the queue is in. */
function testStatements(): void {
  test('admission of up to 4,000 notes', async () => {
    // Measured: 42,300, which is 11 pages per note.
    await expectBuffers(admitGroupsQuery(tables, 'q'), 60_000);
  });

  // Measured: 370 to 670 of 1, most of them to see the next groups; 34 to 40 pages for each of 200.
  test.each(claims)('claim, %s: of %i', async (_, limit, limits) => {
    await expectBuffers(
      claimGroupedJobsQuery(tables, groupClaimOf(worker, { limit, limits })),
      1_000 + 50 * limit,
    );
  });

  test('the look for due groups', async () => {
    await expectBuffers(findDueGroupsQuery(tables, [{ queue: 'q' }]), 20);
  });

  test('notes of groups whose worker is gone', async () => {
    // Measured: 1,460 to 2,440 pages of 100,000 groups.
    await expectBuffersOfAll(noteFreedGroupsQuery(tables, 'q'), 2_600);
  });

  test('notes of forgotten groups, in slices', async () => {
    await expectBuffers(noteForgottenGroupsQuery(tables, 'q', ''), 5_000);
  });

  test('pruning, in slices', async () => {
    await expectBuffers(pruneGroupsQuery(tables, { queue: 'q', after: '', ratePerMs: undefined }), 6_000);
  });

  test.each([false, true])('a page of groups, in order: %s', async (serial) => {
    const page = { queue: 'q', after: '', limit: 51 };
    await expectBuffers(findGroupsQuery(tables, page, ['k'], serial), 1_500);
  });

  test('the groups that a discarded job has stopped', async () => {
    await expectBuffers(findStoppedGroupsQuery(tables, ['q']), 20);
  });

  test.each([undefined, 'end'] as const)('ids of due jobs, in order: %s', async (serial) => {
    const claim = groupClaimOf(worker, { limit: 100 });
    await expectBuffers(findGroupedDueIdsQuery(groupedTables(serial), claim), 7_000);
  });

  test('adoption of jobs without a group, none of which there is', async () => {
    await expectBuffers(findPlainJobsQuery(tables, 'q'), 50);
    await expectBuffers(adoptJobsQuery(tables, 'q'), 50);
    await expectBuffers(adoptJobsQuery(tables, 'q', [1, 2, 3]), 50);
  });

  test('ends of handlers that had completed their jobs, and an unblock', async () => {
    const holder = { queue: 'q', workerId: worker };
    await expectBuffers(endHandlerHoldsQuery(tables, holder, [{ id: 1, group: 'key-1' }]), 50);
    await expectBuffers(unblockGroupQuery(tables, 'q', 'key-1'), 50);
  });

  test('a limit of one group, and of all of them, of which it notes those that wait', async () => {
    const limit = { queue: 'q', kind: '', override: { concurrency: 3 } };
    await expectBuffers(setLimitQuery(tables, { ...limit, group: 'key-1' }), 100);
    await expectBuffersOfAll(setLimitQuery(tables, { ...limit, group: '*' }), 2_600);
  });

  test('enqueues', async () => {
    const job = { queue: 'q', kind: 'k', payload: '{}', priority: 5, maxAttempts: 20, delayMs: 0 } as const;
    const jobs = Array.from({ length: 100 }, (_, n) => ({
      ...job,
      runAtMs: null,
      uniqueKey: null,
      metadata: '{}',
      group: `key-${n}`,
    }));
    await expectBuffers(insertJobsQuery(tables, jobs.slice(0, 1)), 50);
    await expectBuffers(insertJobsQuery(tables, jobs), 50 + 100 * 20);
    await vacuumNotes();
  });

  test('redrive of 100 jobs', async () => {
    await database.client`
      insert into queue_results (job_id, queue, kind, state, priority, attempt, max_attempts, fence, group_key, payload, errors,
        metadata, created_at, run_at)
      select 100000000 + n, 'q', 'k', 'discarded', 5, 20, 20, 1, 'key-' || n, '{}', '[]', '{}', now(), now()
      from generate_series(1, 100) as n`;
    await expectBuffers(redriveJobsQuery(tables, { queue: 'q' }), 50 + 100 * 30);
    await database.client`delete from queue_results where job_id > 100000000`;
    await vacuumNotes();
  });
}

function testSettling(): void {
  test.each([1, 100])('finish and reschedule of %i', async (count) => {
    const { jobs } = await claimGroupedJobs(backend.db, tables, groupClaimOf(worker, { limit: count }));
    // A group in which nothing more is due may have a share once more.
    expect(jobs.length).toBeGreaterThan(count * 0.9);
    const holder = { queue: 'q', workerId: worker };
    const finish = {
      type: 'finish',
      state: 'completed',
      output: '1',
      error: null,
      keepResult: true,
    } as const;
    const put = { type: 'reschedule', delayMs: 1_000, attempt: 1, error: null } as const;
    const of = <T>(transition: T) => jobs.map(({ id, fence }) => ({ id, fence, transition }));
    for (const each of [tables, serial]) {
      await expectBuffers(finishJobsQuery(each, holder, of(finish)), 50 + 20 * count);
      await expectBuffers(rescheduleJobsQuery(each, holder, of(put)), 50 + 25 * count);
      await expectBuffers(releaseJobsQuery(each, holder, jobs), 50 + 25 * count);
    }
  });
}

/** Removes those that were folded in, or rolled back. */
const vacuumNotes = () => database.client`vacuum queue_notes`;

/** Folds in all that was noted, and lets the vacuum follow. */
async function admitAll(): Promise<void> {
  while ((await admitGroups(database.db, tables, 'q')) > 0);
  await vacuumNotes();
}

describe.sequential('1,000,000 jobs of 100,000 keys', () => {
  beforeAll(async () => {
    await empty();
    await fill(MILLION, `'key-' || n % 100000`);
  }, 300_000);

  describe('before any ANALYZE, before any admission', () => {
    testStatements();
  });

  describe('admitted', () => {
    beforeAll(admitAll, 300_000);
    testStatements();
    testSettling();
  });

  describe('admitted and analysed', () => {
    beforeAll(() => database.client`analyze`, 300_000);
    testStatements();
    testSettling();
  });
});

/** A snapshot from before all that follows: nothing that is dead may be removed. */
function underOldSnapshot(): void {
  let old: Backend;

  beforeAll(async () => {
    old = (await twoBackends(database))[1];
    await old.client`begin isolation level repeatable read`;
    await old.client`select count(*) from queue_limits`;
  });

  afterAll(() => old.client`rollback`);
}

type Size = Pick<GroupClaim, 'limit'> & Partial<Pick<GroupClaim, 'groups'>>;

/** Claims jobs and ends them, as a worker does; answers how many. */
async function workOnce(limits: Partial<ClaimLimits>, size: Size = { limit: 500 }): Promise<number> {
  const of = limits.run === undefined ? tables : serial;
  const finish = {
    type: 'finish',
    state: 'completed',
    output: null,
    error: null,
    keepResult: false,
  } as const;
  const { jobs } = await claimGroupedJobs(database.db, of, groupClaimOf(worker, { ...size, limits }));
  await finishJobs(
    database.db,
    of,
    { queue: 'q', workerId: worker },
    jobs.map(({ id, fence }) => ({ id, fence, transition: finish })),
  );
  return jobs.length;
}

/** So many times 500. */
async function work(times: number, limits: Partial<ClaimLimits>): Promise<void> {
  for (let n = 0; n < times; n++) expect(await workOnce(limits)).toBe(500);
}

describe.sequential('1,000,000 jobs of 100,000 keys, under an old snapshot', () => {
  beforeAll(async () => {
    await empty();
    await fill(MILLION, `'key-' || n % 100000`);
    await admitAll();
    await database.client`analyze`;
  }, 300_000);
  underOldSnapshot();

  let done = 0;
  // Measured after 60,000 jobs more: claims of 1, 20 and 200 touch 980, 1,640 and 7,460 pages instead of
  // 410, 1,050 and 6,630, and the look for due groups 1,400 instead of 4.
  test.each(WAYS)(
    'after 20,000 jobs more, %s',
    async (_, limits) => {
      await work(40, limits);
      done += 20_000;
      for (const [, claimed] of WAYS) {
        for (const limit of LIMITS) {
          const claim = claimGroupedJobsQuery(tables, groupClaimOf(worker, { limit, limits: claimed }));
          await expectBuffers(claim, 1_000 + 50 * limit + done / 50);
        }
      }
      // Measured: 64,700 to 72,700, which is 16 to 18 pages per note. Before claims used notes themselves few were left.
      await expectBuffers(admitGroupsQuery(tables, 'q'), 62_000 + done / 3);
      await expectBuffers(findDueGroupsQuery(tables, [{ queue: 'q' }]), 20 + done / 30);
    },
    300_000,
  );
});

describe.sequential('one key with 100,000 jobs, under an old snapshot', () => {
  beforeAll(async () => {
    await empty();
    await fill(100_000, `'hot'`);
    await admitAll();
    await database.client`analyze`;
  }, 300_000);
  underOldSnapshot();

  // A claim walks over the dead rows of its groups. Measured: 45,300 pages after 20,000 jobs, two for each.
  test('claims of 200 after 20,000 jobs', async () => {
    await work(40, {});
    for (const [, limits] of WAYS) {
      const claim = claimGroupedJobsQuery(tables, groupClaimOf(worker, { limit: 200, limits }));
      await expectBuffers(claim, 1_000 + 50 * 200 + 2.5 * 20_000);
    }
  }, 300_000);
});

describe.sequential.each(WAYS)('1,000 keys with 100,000 jobs, under an old snapshot, %s', (_, limits) => {
  beforeAll(async () => {
    await empty();
    await fill(100_000, `'key-' || n % 1000`);
    await admitAll();
    await database.client`analyze`;
  }, 300_000);
  underOldSnapshot();

  // What it touches more: the dead rows of its jobs, and all versions of a group's row where it writes another one. Measured: 2.6, 5.8, 6.3.
  test('each job of a group that has ended costs a claim of it seven pages more at most', async () => {
    // Two of each of 100 groups, or one where they go one after the other.
    const size = { limit: 'run' in limits ? 100 : 200, groups: 100 };
    const claim = () => claimGroupedJobsQuery(tables, groupClaimOf(worker, { ...size, limits }));
    const [before = Number.NaN] = await pagesOf(claim());
    let done = 0;
    while (done < 25_000) done += await workOnce(limits, size);
    const ofEach = done / 1_000;
    for (const after of await pagesOf(claim())) {
      expect((after - before) / (size.groups * ofEach)).toBeLessThanOrEqual(7);
    }
  }, 300_000);
});

describe.sequential('300,000 groups', () => {
  beforeAll(async () => {
    await empty();
    await fill(300_000, `'key-' || n`);
    await admitAll();
    await database.client`analyze`;
  }, 300_000);

  // Measured: 4,100, and 4,700 at most.
  test('no claim reads more than three times the pages of the median, though a worker dies meanwhile', async () => {
    const [dead = 0] = await addWorkers(database.client);
    await claimGroupedJobs(database.db, tables, groupClaimOf(dead, { limit: 200 }));
    const pages: number[] = [];
    let after = '';
    for (let turn = 0; turn < 60; turn++) {
      const claim = claimGroupedJobsQuery(tables, groupClaimOf(worker, { limit: 200 }));
      pages.push(buffersOf(await explain(backend, claim, 'force_custom_plan')));
      await workOnce({});
      const slice = await pruneGroups(database.db, tables, { queue: 'q', after, ratePerMs: undefined });
      after = slice.last ?? '';
      if (turn === 20) await database.client`delete from queue_workers where id = ${dead}`;
      if (turn === 30) expect(await noteFreedGroups(database.db, tables, 'q')).toBe(200);
    }
    const [median = 0] = pages.toSorted((a, b) => a - b).slice(30);
    expect(Math.max(...pages)).toBeLessThan(3 * median);
  }, 300_000);
});

describe.sequential('10,000 tenants beside one with 1,000,000 jobs', () => {
  beforeAll(async () => {
    await empty();
    await fill(20_000, `'tenant-' || n % 10000`);
    await fill(MILLION, `'large'`);
  }, 300_000);

  describe('before any ANALYZE', () => {
    beforeAll(admitAll, 300_000);
    testStatements();
    testSettling();
  });

  describe('analysed', () => {
    beforeAll(() => database.client`analyze`, 300_000);
    testStatements();
    testSettling();
  });
});

describe.sequential('one tenant with 1,000,000 scheduled jobs before its due ones', () => {
  beforeAll(async () => {
    await empty();
    await fill(MILLION, `'later'`, `now() + interval '1 day' + random() * interval '1 day'`, 'n % 5');
    await fill(1_000, `'later'`);
    await admitAll();
  }, 300_000);

  testStatements();
  testSettling();
});

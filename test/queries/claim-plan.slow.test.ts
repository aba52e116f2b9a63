import { beforeAll, describe, expect, test } from 'vitest';
import { claimJobsQuery } from '../../src/core/queries/claim/claim-jobs.ts';
import { completeOneJobQuery } from '../../src/core/queries/settle/complete-one-job.ts';
import { finishJobsQuery } from '../../src/core/queries/settle/finish-jobs.ts';
import { rescheduleJobsQuery } from '../../src/core/queries/settle/reschedule-jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, cteOf, explain, nodesOf, type PlanMode, type PlanNode } from './support/explain.ts';
import { ALL_BANDS, claimOf, tables } from './support/jobs.ts';
import { type Backend, twoBackends } from './support/locks.ts';

const database = useTestDatabase();
let backend: Backend;

beforeAll(async () => {
  [backend] = await twoBackends(database);
  // Statistics are gathered when a test says so.
  await database.client`alter table queue_jobs set (autovacuum_enabled = off)`;
});

const MILLION = 1_000_000;
const modes: PlanMode[] = ['force_custom_plan', 'force_generic_plan'];
/** With every limit and mode, as the hot path and as a sweep. */
const claims = modes.flatMap((mode) =>
  [1, 20, 200].flatMap((limit) =>
    [false, true].map((fromGoneWorkers) => {
      const title = `${mode}, ${fromGoneWorkers ? 'sweep' : 'claim'} of ${limit}`;
      return [title, { mode, limit, fromGoneWorkers }] as const;
    }),
  ),
);

/** When the jobs were due that are due. */
const START = '2024-01-01T00:00:00Z';

async function fill(count: number, priority: string, runAt: string): Promise<void> {
  await database.client.unsafe(`
    insert into queue_jobs (queue, kind, payload, max_attempts, priority, run_at)
    select 'q', 'k', '{"orderId": 1}', 20, ${priority}, ${runAt} from generate_series(1, ${count}) as n`);
}

let claimed = 0;

interface MeasuredClaim {
  readonly mode: PlanMode;
  readonly limit: number;
  readonly fromGoneWorkers: boolean;
  /** Where the claims of a state start, one after the other, so that none meets the dead rows that one before it has left. */
  readonly stepMs?: number;
}

async function claimPlan({ mode, stepMs, ...claim }: MeasuredClaim): Promise<PlanNode> {
  const floorMs = stepMs === undefined ? Number.NEGATIVE_INFINITY : Date.parse(START) + claimed++ * stepMs;
  const bands = ALL_BANDS.map((band) => ({ ...band, floorMs }));
  return await explain(backend, claimJobsQuery(tables, claimOf({ ...claim, bands })), mode);
}

/** One index range per priority, in the order of the index, and no more of the table. */
function expectIndexRanges(plan: PlanNode): void {
  const nodes = nodesOf(cteOf(plan, 'due'));
  const scans = nodes.filter(
    (node) => node['Relation Name'] === 'queue_jobs' || /^Bitmap/.test(node['Node Type']),
  );
  expect(scans.map((node) => [node['Node Type'], node['Index Name']])).toEqual([
    ['Index Scan', 'queue_jobs_claim_idx'],
  ]);
  const [scan] = scans;
  expect(scan?.['Index Cond']).toMatch(
    /^\(\(priority = band\.priority\) AND \(queue = [^)]+\) AND \(run_at >= band\.floor\) AND \(run_at <= statement_timestamp\(\)\)\)$/,
  );
  expect(scan?.['Actual Loops']).toBeLessThanOrEqual(10);
  expect(nodes.filter((node) => /Sort/.test(node['Node Type']))).toEqual([]);
}

/** The rows that are changed are found by the primary key. */
function expectPrimaryKey(plan: PlanNode): void {
  const scans = nodesOf(plan).filter(
    (node) => node['Relation Name'] === 'queue_jobs' || node['Index Name'] !== undefined,
  );
  const indexes = scans.map((node) => node['Index Name']).filter((name) => name !== undefined);
  expect(new Set(indexes)).toEqual(new Set(['queue_jobs_pkey']));
  expect(scans.map((node) => node['Node Type'])).not.toContain('Seq Scan');
}

/** The claim's plan without its `due`. */
function updateOf(plan: PlanNode): PlanNode {
  return { ...plan, Plans: (plan.Plans ?? []).filter((node) => node['Subplan Name'] !== 'CTE due') };
}

/** The right plan, the right rows, and no more pages than those cost. */
async function expectClaim(claim: MeasuredClaim, found: number): Promise<void> {
  const plan = await claimPlan(claim);
  expectIndexRanges(plan);
  expectPrimaryKey(updateOf(plan));
  const due = cteOf(plan, 'due');
  expect(due['Actual Rows']).toBe(found);
  // Measured: 2 pages per band of an empty table, 3 of a million jobs (the depth of the index); per row 1 page where run_at follows
  // the order of the inserts, 2 where it does not.
  expect(buffersOf(due)).toBeLessThanOrEqual(35 + 2.5 * found);
  // Measured: 12 to 16 pages per row, most of them for the new version's entries in the indexes (the fillfactor is 100).
  expect(buffersOf(plan)).toBeLessThanOrEqual(50 + 18 * found);
}

// In this order: each state is made out of the one before.
describe.sequential('an empty table that was never analysed', () => {
  test.each(claims)('%s', async (_, claim) => {
    await expectClaim(claim, 0);
  });
});

/** What ends or puts back 1 or 100 of these held jobs. */
function testSettling(held: () => readonly number[]): void {
  const holder = { queue: 'q', workerId: 1 };
  const cases = modes.flatMap((mode) =>
    [1, 100].map((count) => [`${mode}, ${count} at once`, mode, count] as const),
  );

  const keeps = [true, false];

  test.each(cases.flatMap((each) => keeps.map((keep) => [...each, keep] as const)))(
    'finish: %s, keepResult: %4$s',
    async (_, mode, count, keepResult) => {
      const finishes = held()
        .slice(0, count)
        .map((id) => ({
          id,
          fence: 1,
          transition: { type: 'finish', state: 'completed', output: '1', error: null, keepResult } as const,
        }));
      const plan = await explain(backend, finishJobsQuery(tables, holder, finishes), mode);
      expect(cteOf(plan, 'finished')['Actual Rows']).toBe(count);
      // None was lost.
      expect(plan['Actual Rows']).toBe(0);
      expectPrimaryKey(plan);
      // Measured: 6 to 8 pages per row, of which 3 are the way through the index.
      expect(buffersOf(plan)).toBeLessThanOrEqual(20 + 10 * count);
    },
  );

  test.each(modes.flatMap((mode) => keeps.map((keepResult) => [mode, keepResult] as const)))(
    'complete(tx), which prepares where the app does: %s, keepResult: %s',
    async (mode, keepResult) => {
      const job = { id: Number(held()[0]), fence: 1, output: '1', keepResult };
      // Its transaction has written nothing, so it finds nothing; the plan is the same.
      expectPrimaryKey(await explain(backend, completeOneJobQuery(tables, holder, job), mode));
    },
  );

  test.each(cases)('reschedule: %s', async (_, mode, count) => {
    const reschedules = held()
      .slice(0, count)
      .map((id) => ({
        id,
        fence: 1,
        transition: { type: 'reschedule', delayMs: 1_000, attempt: 1, error: null } as const,
      }));
    const plan = await explain(backend, rescheduleJobsQuery(tables, holder, reschedules), mode);
    expect(plan['Actual Rows']).toBe(count);
    expectPrimaryKey(plan);
    // Measured: 11 to 16 pages per row: a new run_at is a new entry in each index.
    expect(buffersOf(plan)).toBeLessThanOrEqual(20 + 18 * count);
  });
}

/** Lets worker 1 hold 100 jobs, far from each other; answers their ids. */
async function hold(distance: number): Promise<number[]> {
  const rows = await database.client<{ id: string }[]>`
    update queue_jobs set worker_id = 1, fence = 1
    where id in (select min(id) + n * ${distance}::int from queue_jobs, generate_series(1, 100) as n group by n)
    returning id`;
  expect(rows).toHaveLength(100);
  return rows.map(({ id }) => Number(id));
}

describe.sequential('1,000,000 due jobs, some of them held', () => {
  let held: number[] = [];

  beforeAll(async () => {
    await fill(MILLION, '5', `timestamptz '${START}' + n * interval '1 ms'`);
    held = await hold(5_000);
  });

  describe('before any ANALYZE', () => {
    test.each(claims)('%s', async (_, claim) => {
      await expectClaim({ ...claim, stepMs: 1_000 }, claim.limit);
    });

    testSettling(() => held);
  });

  describe('analysed', () => {
    beforeAll(() => database.client`analyze queue_jobs`);

    test.each(claims)('%s', async (_, claim) => {
      await expectClaim({ ...claim, stepMs: 1_000 }, claim.limit);
    });

    testSettling(() => held);
  });
});

describe.sequential('1,000,000 scheduled jobs over all priorities', () => {
  beforeAll(async () => {
    await database.client`truncate queue_jobs`;
    await fill(MILLION, 'n % 10', `now() + interval '1 day' + random() * interval '1 day'`);
  });

  describe('with statistics of other days', () => {
    test.each(claims)('%s', async (_, claim) => {
      await expectClaim(claim, 0);
    });
  });

  describe('analysed', () => {
    beforeAll(() => database.client`analyze queue_jobs`);

    test.each(claims)('%s', async (_, claim) => {
      await expectClaim(claim, 0);
    });
  });
});

describe.sequential('300,000 due jobs over all priorities, run_at in no order', () => {
  beforeAll(async () => {
    await database.client`truncate queue_jobs`;
    await fill(300_000, 'n % 10', `timestamptz '${START}' + random() * interval '1 hour'`);
    await database.client`analyze queue_jobs`;
    claimed = 0;
  });

  // The planner expects 150 of the 30,000 rows of a band, so a limit of 200 that it knew would make it sort them all.
  test.each(claims)('%s', async (_, claim) => {
    await expectClaim({ ...claim, stepMs: 60_000 }, claim.limit);
  });
});

describe.sequential('20,000 jobs, few enough that reading all of them looks cheap', () => {
  let held: number[] = [];

  beforeAll(async () => {
    await database.client`truncate queue_jobs`;
    await fill(20_000, '5', 'now()');
    held = await hold(100);
    await database.client`analyze queue_jobs`;
  });

  testSettling(() => held);
});

// PostgreSQL 18 skips over leading columns of an index: without its predicate the claim's index looked cheaper for this queue
// than the primary key to whatever names ids.
describe.sequential('300,000 due jobs of a queue that was empty at the last ANALYZE', () => {
  let held: number[] = [];

  beforeAll(async () => {
    await database.client`truncate queue_jobs`;
    await fill(1_000, '5', 'now()');
    await database.client`update queue_jobs set queue = 'other'`;
    await database.client`analyze queue_jobs`;
    await database.client`delete from queue_jobs`;
    await fill(300_000, '5', `timestamptz '${START}' + n * interval '1 ms'`);
    held = await hold(1_000);
    claimed = 0;
  });

  test.each(claims)('%s', async (_, claim) => {
    await expectClaim({ ...claim, stepMs: 1_000 }, claim.limit);
  });

  testSettling(() => held);
});

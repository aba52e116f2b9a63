import type { SQL } from 'drizzle-orm';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  browseByRunAt,
  browseByRunAtQuery,
  findReadEndQuery,
} from '../../src/core/queries/browse/browse-by-run-at.ts';
import {
  browseJobsQuery,
  type JobSearch,
  type JobsToBrowse,
} from '../../src/core/queries/browse/browse-jobs.ts';
import { countOfGroupQuery } from '../../src/core/queries/browse/count-of-group.ts';
import { findBands, findBandsQuery } from '../../src/core/queries/browse/find-bands.ts';
import { FIRST_PLACE } from '../../src/core/sql/job-place.ts';
import type { LiveState } from '../../src/core/sql/job-record.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, explain, nodesOf, type PlanMode, type PlanNode } from './support/explain.ts';
import { clearTables, tables } from './support/jobs.ts';
import { type Backend, twoBackends } from './support/locks.ts';

const database = useTestDatabase();
const modes: PlanMode[] = ['force_custom_plan', 'force_generic_plan'];
const everything = { queues: undefined, group: undefined, limit: 401 };
const scope = { queues: undefined, own: [] };

/**
 * What each lookup of an operator may read, in pages of 8 kB: an index leads to what it shows, so it is no matter that
 * there are a million of each. The sizes are those of the dashboard.
 */
describe.sequential('with 1,000,000 live jobs, 1,000,000 results, 8 queues and 300 groups', () => {
  let backend: Backend;

  beforeAll(async () => {
    [backend] = await twoBackends(database);
    await clearTables(database.client);
    await database.client`
      insert into queue_jobs (queue, kind, payload, run_at, max_attempts, group_key, unique_key, worker_id, attempt, errors)
      select 'q' || n % 8, 'kind-' || n % 20, jsonb_build_object('orderId', n),
        now() + (n % 3 - 1) * interval '1 hour' - n * interval '1 ms', 20,
        case when n % 40 = 0 then 'g' || n / 40 % 300 end, case when n % 10 = 1 then 'order-' || n end,
        case when n > 998000 and n % 3 = 0 then 7 end, 0, '[]'
      from generate_series(1, 1000000) as n`;
    await database.client`
      insert into queue_results (job_id, queue, kind, payload, state, attempt, max_attempts, priority, fence,
        metadata, created_at, run_at, finished_at, errors, group_key, unique_key)
      select 2000000 + n, 'q' || n % 8, 'kind-' || n % 20, jsonb_build_object('orderId', n), 'completed', 1, 20, 5, 1,
        '{}', now(), now(), now(), '[]', case when n % 10 = 0 then 'g' || n / 10 % 300 end,
        case when n % 10 = 1 then 'order-' || n end
      from generate_series(1, 1000000) as n`;
  }, 300_000);

  const browsed = (search: Partial<JobSearch>, more: Partial<JobsToBrowse> = {}): SQL =>
    browseJobsQuery(tables, {
      search: { payload: [], own: [], ...search },
      scope,
      before: undefined,
      limit: 51,
      excerpt: 200,
      bound: 100_000,
      ...more,
    });
  const inState = async (state: LiveState, inOrder: number): Promise<SQL[]> => {
    const bands = await findBands(database.db, tables, everything);
    const read = { state, bands, after: FIRST_PLACE, bound: Math.ceil(inOrder / bands.length) };
    const page = { ...read, search: { payload: [], own: [] }, scope, limit: 51, excerpt: 200 };
    const found = await browseByRunAt(database.db, tables, page);
    return [
      findBandsQuery(tables, everything),
      browseByRunAtQuery(tables, page),
      findReadEndQuery(tables, { ...read, until: found.at(-1)?.place }),
    ];
  };
  const group = 'g7';
  const lookups: [what: string, pages: number, queries: () => Promise<SQL[]> | SQL[]][] = [
    ['an id', 50, () => [browsed({ id: 500_001 })]],
    ['a key', 100, () => [browsed({ uniqueKey: 'order-500001' }, { live: 'key', results: 'sought' })]],
    [
      'a group',
      1_000,
      () => [
        countOfGroupQuery(tables, { group, most: 10_001 }),
        browsed({ group }, { live: 'group', results: 'sought' }),
      ],
    ],
    ['jobs that are due', 3_300, () => inState('due', 20_000)],
    ['jobs that run', 4_000, () => inState('running', 3_000)],
    ['scheduled jobs', 3_000, () => inState('scheduled', 20_000)],
    ['waiting jobs', 5_000, () => inState('waiting', 20_000)],
    ['jobs to be retried', 10, () => [browsed({ state: 'retrying' }, { live: 'failed' })]],
  ];

  describe.each([
    ['never analysed', ''],
    ['analysed', 'vacuum analyze queue_jobs, queue_results'],
  ])('%s', (_, prepare) => {
    beforeAll(async () => {
      if (prepare !== '') await database.client.unsafe(prepare);
    }, 120_000);

    // Until the first ANALYZE the planner takes nearly all jobs for failed ones, and reads the table.
    const known = prepare === '' ? lookups.filter(([what]) => what !== 'jobs to be retried') : lookups;
    test.each(modes.flatMap((mode) => known.map(([what, most, queries]) => ({ what, mode, most, queries }))))(
      '$what: $most pages of the tables and indexes at most ($mode)',
      async ({ mode, most, queries }) => {
        const plans: PlanNode[] = [];
        for (const query of await queries()) plans.push(await explain(backend, query, mode));
        const read = plans.map(buffersOf).reduce((sum, pages) => sum + pages, 0);
        expect(read).toBeLessThanOrEqual(most);
        expect(plans.flatMap(nodesOf).filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([]);
      },
    );
  });
});

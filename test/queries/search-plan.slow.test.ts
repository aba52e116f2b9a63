import { beforeAll, describe, expect, test } from 'vitest';
import { findJobsQuery } from '../../src/core/queries/operate/find-jobs.ts';
import { findLiveIdsQuery } from '../../src/core/queries/operate/find-live-ids.ts';
import { type JobsPage, listJobsQuery } from '../../src/core/queries/operate/list-jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, explain, nodesOf, type PlanMode } from './support/explain.ts';
import { clearTables, tables } from './support/jobs.ts';
import { type Backend, twoBackends } from './support/locks.ts';

const database = useTestDatabase();
const modes: PlanMode[] = ['force_custom_plan', 'force_generic_plan'];

describe.sequential('with 1,000,000 results and 200,000 live jobs', () => {
  let backend: Backend;

  beforeAll(async () => {
    [backend] = await twoBackends(database);
    await clearTables(database.client);
    await database.client`
      insert into queue_results (job_id, queue, kind, payload, state, attempt, max_attempts, priority, fence,
        metadata, created_at, run_at, finished_at, errors)
      select n, 'q', 'k', jsonb_build_object('orderId', n, 'note', repeat('x', 200)), 'completed', 1, 20, 5, 1,
        '{}', now() - interval '30 days' + n * interval '1 s', now(), now(), '[]'
      from generate_series(1, 1000000) as n`;
    await database.client`
      insert into queue_jobs (id, queue, kind, payload, max_attempts, run_at) overriding system value
      select n, 'q', 'k', jsonb_build_object('orderId', n, 'note', repeat('x', 200)), 20, now() + interval '1 day'
      from generate_series(1000001, 1200000) as n`;
  }, 300_000);

  const page: JobsPage = {
    kind: undefined,
    queue: undefined,
    state: undefined,
    before: undefined,
    limit: 51,
    payload: '{"orderId": -1}',
    searchLimit: 100_000,
  };
  const searches: [what: string, page: JobsPage][] = [
    ['from the newest', page],
    ['from a cursor among the results', { ...page, before: 900_000 }],
    ['over the border of both', { ...page, before: 1_050_000 }],
    ['of results alone', { ...page, state: 'completed' }],
  ];

  describe.each([
    ['never analysed', ''],
    ['analysed', 'vacuum analyze queue_jobs, queue_results'],
  ])('%s', (_, prepare) => {
    beforeAll(async () => {
      if (prepare !== '') await database.client.unsafe(prepare);
    }, 120_000);

    // Without statistics the planner expects a third of the table below a cursor, and may read that.
    const known = prepare === '' ? searches.slice(0, 1) : searches;
    test.each(modes.flatMap((mode) => known.map(([what, page]) => [what, mode, page] as const)))(
      'a search %s reads no more than the newest ids (%s)',
      async (what, mode, page) => {
        const plan = await explain(backend, listJobsQuery(tables, page), mode);
        const scans = nodesOf(plan).filter((node) => node['Relation Name'] !== undefined);
        for (const scan of scans) {
          expect(scan['Index Name'], what).toMatch(/_pkey$/);
          expect(scan['Actual Rows'] * scan['Actual Loops']).toBeLessThanOrEqual(100_001);
        }
        // Of each table the ids and the rows, 100,000 at most: about 20 rows to a page.
        expect(buffersOf(plan)).toBeLessThan(250_000);
      },
    );

    test.each(modes)('1,000 awaited jobs are looked up one by one (%s)', async (mode) => {
      const ids = Array.from({ length: 1_000 }, (_, n) => 1_000_100 + n * 190);
      for (const query of [findLiveIdsQuery(tables, ids), findJobsQuery(tables, ids)]) {
        const plan = await explain(backend, query, mode);
        const nodes = nodesOf(plan);
        expect(nodes.map((node) => node['Node Type'])).not.toContain('Seq Scan');
        for (const { 'Index Name': name } of nodes) if (name !== undefined) expect(name).toMatch(/_pkey$/);
        // Measured: 3 or 4 pages an id and table.
        expect(buffersOf(plan)).toBeLessThan(10_000);
      }
    });
  });
});

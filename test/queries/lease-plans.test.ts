import { beforeAll, describe, expect, test } from 'vitest';
import { findLeasesQuery } from '../../src/features/limits/queries/find-leases.ts';
import { findGroupLimitsQuery, findLimitsQuery } from '../../src/features/limits/queries/find-limits.ts';
import { takeLease, takeLeaseQuery } from '../../src/features/limits/queries/take-lease.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, explain, nodesOf } from './support/explain.ts';
import { limitTables as tables } from './support/jobs.ts';

const database = useTestDatabase({ max: 1 });
const WORKERS = 1_000;

beforeAll(async () => {
  await addControlTables(database);
  // Known to the planner as empty, which is the worst that it can know.
  await database.client`analyze queue_limits, queue_usage, queue_workers`;
  await database.client`
    insert into queue_workers (id, name, queues) overriding system value
    select n, 'w' || n, '["q"]' from generate_series(1, ${WORKERS}) as n`;
  await database.client`
    insert into queue_limits (queue, group_key, concurrency)
    select 'q', 'g' || n, 2 from generate_series(1, 100000) as n`;
  await database.client`insert into queue_limits (queue, concurrency) values ('q', 5000)`;
  await database.client`
    insert into queue_usage (queue, leases)
    select 'q', jsonb_object_agg(n, jsonb_build_array(4, 10, 0)) from generate_series(1, ${WORKERS}) as n`;
  await database.client`insert into queue_usage (queue, kind) select 'q', 'k' || n from generate_series(1, 100) as n`;
});

const wish = { queue: 'q', kind: '', workerId: 7, declared: 10, running: 4, want: 10, wants: 10, era: 0 };
const statements = {
  'a take': takeLeaseQuery(tables, wish),
  'a look': findLeasesQuery(tables, 7, [
    { queue: 'q', kind: '', declared: 10 },
    { queue: 'q', kind: 'k7', declared: null },
  ]),
  'what was set': findLimitsQuery(tables, 'q'),
  'a page of groups': findGroupLimitsQuery(tables, { queue: 'q', after: 'g5', limit: 101 }),
  'what is in use': findLeasesQuery(tables, null, [{ queue: 'q', kind: '', declared: null }]),
};

describe.each(['force_custom_plan', 'force_generic_plan'] as const)('%s', (mode) => {
  test.each(Object.entries(statements))(
    `%s, with the leases of ${WORKERS} workers and 100,000 limits of groups, reads little`,
    async (name, query) => {
      const plan = await explain(database, query, mode);
      // The row of leases is 15 kB, and the workers 10 pages.
      const most = { 'what was set': 1_200 }[name] ?? 300;
      expect(buffersOf(plan)).toBeLessThan(most);
      if (name === 'what was set') return;
      expect(
        nodesOf(plan).filter(
          (node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] === 'queue_limits',
        ),
      ).toEqual([]);
    },
  );
});

test(`a take among ${WORKERS} workers takes milliseconds`, async () => {
  const tookMs: number[] = [];
  for (let n = 1; n <= 50; n++) {
    const startMs = performance.now();
    const share = await takeLease(database.db, tables, { ...wish, workerId: n, want: 4 + (n % 2) });
    tookMs.push(performance.now() - startMs);
    expect(share?.sharing).toBe(WORKERS);
  }
  expect(tookMs.sort((a, b) => a - b)[25]).toBeLessThan(100);
});

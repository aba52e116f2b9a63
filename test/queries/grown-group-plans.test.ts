import { beforeAll, describe, expect, test } from 'vitest';
import { claimGroupedJobsQuery } from '../../src/features/limits/queries/claim-grouped-jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { explain, nodesOf } from './support/explain.ts';
import { groupClaimOf, groupedTables } from './support/groups.ts';
import { grownTables } from './support/grown-table.ts';
import { type Backend, twoBackends } from './support/locks.ts';

/*
 * As in grown-table-plans.test.ts, claims of a few jobs of groups: the table of the jobs is grown, all others are small.
 */

const database = useTestDatabase();
let backend: Backend;

beforeAll(async () => {
  await addControlTables(database);
  [backend] = await twoBackends(database);
  await database.client`alter table queue_jobs set (autovacuum_enabled = off)`;
});

const WAYS = [
  ['shares', undefined, {}],
  ['two at once', undefined, { concurrency: 2 }],
  ['one after the other', 'end', { run: 50 }],
  ['a rate', undefined, { rate: { limit: 10, perMs: 60_000 } }],
] as const;

describe.each([
  ['ten groups', `'g-' || n % 10`],
  ['a group each', `'g-' || n || random()`],
  ['one group', `'g'`],
])('jobs of %s', (_, group) => {
  describe.sequential.each(grownTables(group))('in a table that has just grown, %s', (_, make) => {
    beforeAll(() => make(database.client));

    test.each(WAYS)('%s', async (_, serial, limits) => {
      const claim = groupClaimOf(1, { limit: 8, limits, ifTablesAre: 'grown' });
      const plan = await explain(
        backend,
        claimGroupedJobsQuery(groupedTables(serial), claim),
        'force_generic_plan',
      );
      const scans = nodesOf(plan).filter((node) => node['Relation Name'] === 'queue_jobs');
      const read = scans.map((node) => node['Node Type']).filter((type) => type !== 'ModifyTable');
      const indexes = new Set(scans.map((node) => node['Index Name']).filter((name) => name !== undefined));
      expect(read.filter((type) => !['Index Scan', 'Index Only Scan', 'Tid Scan'].includes(type))).toEqual(
        [],
      );
      expect(indexes).toEqual(new Set(['queue_jobs_pkey', 'queue_jobs_group_idx']));
    });
  });
});

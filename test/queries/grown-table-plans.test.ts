import type { SQL } from 'drizzle-orm';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, describe, expect, test } from 'vitest';
import { beginJobsQuery } from '../../src/core/queries/begin/begin-jobs.ts';
import { claimJobsQuery } from '../../src/core/queries/claim/claim-jobs.ts';
import { findDueQuery } from '../../src/core/queries/claim/find-due.ts';
import { findOverlookedQuery } from '../../src/core/queries/claim/find-overlooked.ts';
import { finishJobsQuery } from '../../src/core/queries/settle/finish-jobs.ts';
import { inContext, type StatementContext } from '../../src/core/sql/statement-context.ts';
import { TalliedEnds } from '../../src/features/batches/sql/tallied-ends.ts';
import { recordOneStepQuery } from '../../src/features/workflows/queries/record-one-step.ts';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { explain, nodesOf } from './support/explain.ts';
import { grownTables } from './support/grown-table.ts';
import { ALL_BANDS, claimOf, tables } from './support/jobs.ts';
import { type Backend, twoBackends } from './support/locks.ts';

/*
 * The plans of the forms for grown tables are kept, whatever the table is when they are made: here it is just large
 * enough for them. Each has to use an index then, since the table may have a million rows before the next one is made.
 */

const database = useTestDatabase();
let backend: Backend;

beforeAll(async () => {
  await addWorkflowTables(database);
  [backend] = await twoBackends(database);
  // Statistics are gathered when a test says so.
  await database.client`alter table queue_jobs set (autovacuum_enabled = off)`;
});

const ifTableIs = 'grown';
const holder = { queue: 'q', workerId: 1 };
const held = [{ id: 1, fence: 1 }];
const passed = ALL_BANDS.map(() => ({ floorMs: Date.now(), endMs: Date.now() }));

const finished = (keepResult: boolean | 'outcome', context: StatementContext = {}) =>
  finishJobsQuery(
    inContext(tables, context),
    holder,
    held.map((job) => ({
      ...job,
      transition: { type: 'finish', state: 'completed', output: '1', error: null, keepResult },
    })),
    { ifTableIs },
  );

const STATEMENTS: Readonly<Record<string, SQL>> = {
  'a claim': claimJobsQuery(tables, claimOf({ limit: 20, beginning: 1, ifTableIs })),
  'a claim that begins some': claimJobsQuery(
    tables,
    claimOf({ limit: 20, beginning: { atMost: 10, provenKinds: ['k'] }, ifTableIs }),
  ),
  'a beginning': beginJobsQuery(tables, holder, held, { ifTableIs }),
  'a look': findDueQuery(tables, {
    looks: [{ queue: 'q', floorMs: Number.NEGATIVE_INFINITY }],
    kinds: ['k'],
    horizonMs: 2_000,
    ifTableIs,
  }),
  'a sweep': findOverlookedQuery(tables, {
    looks: [{ queue: 'q', passed, after: undefined }],
    kinds: ['k'],
    workerId: 1,
    slice: 20_000,
    ifTableIs,
  }),
  'a settlement': finished(true),
  'a settlement of outcomes': finished('outcome'),
  'a settlement without results': finished(false),
  'a settlement of members': finished(true, { members: new TalliedEnds(workflowTables) }),
  'a step': recordOneStepQuery(
    { ...tables, ...workflowTables },
    holder,
    { id: 1, fence: 1, name: 's', kind: 'run', output: '1', tookMs: 1, ended: true },
    'briefly',
    { ifTableIs },
  ),
};

describe.sequential.each(grownTables())('a table that has just grown, %s', (_, make) => {
  beforeAll(() => make(database.client));

  test.each(Object.entries(STATEMENTS))('%s', async (_, statement) => {
    const plan = await explain(backend, statement, 'force_generic_plan');
    const scans = nodesOf(plan).filter((node) => node['Relation Name'] === 'queue_jobs');
    const read = scans.map((node) => node['Node Type']).filter((type) => type !== 'ModifyTable');
    expect(new Set(read)).toEqual(new Set(['Index Scan']));
    expect(nodesOf(plan).filter((node) => /Bitmap/.test(node['Node Type']))).toEqual([]);
  });
});

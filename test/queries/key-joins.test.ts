import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { KeyRule } from '../../src/core/job/key-rule.ts';
import type { NewJob } from '../../src/core/job/new-job.ts';
import { queueKeys } from '../../src/features/control/index.ts';
import {
  insertLimitedJobs,
  insertLimitedJobsQuery,
} from '../../src/features/keys/queries/insert-limited-jobs.ts';
import {
  insertTrailingJobs,
  insertTrailingJobsQuery,
} from '../../src/features/keys/queries/insert-trailing-jobs.ts';
import { insertWaitingJobsQuery } from '../../src/features/keys/queries/insert-waiting-jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { explain, nodesOf, type PlanNode } from './support/explain.ts';
import { clearTables, tables } from './support/jobs.ts';

/** What a node has looked at in vain, once for each of its loops. */
interface Looks extends PlanNode {
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
}

const database = useTestDatabase({ max: 1 });
const JOBS = 2_000;
/** Where all were compared with all, it would be thousands. */
const MOST_ROWS = 20 * JOBS;
const known = { tables, keys: queueKeys };

beforeAll(() => addControlTables(database));

beforeEach(async () => {
  await clearTables(database.client);
  await database.client`delete from queue_keys`;
});

const debounce = { type: 'debounce', maxWaitMs: 30_000 } as const;
const throttle = { type: 'throttle', perMs: 60_000, trailing: false } as const;
const trailing = { type: 'throttle', perMs: 60_000, trailing: true } as const;

function jobsOf(rule: { [R in KeyRule as R['type']]: Omit<R, 'key'> }[KeyRule['type']], queues: number) {
  return Array.from(
    { length: JOBS },
    (_, n): NewJob => ({
      queue: `q${n % queues}`,
      kind: 'k',
      payload: `{"n":${n}}`,
      priority: 5,
      maxAttempts: 20,
      delayMs: 0,
      runAtMs: null,
      uniqueKey: null,
      metadata: '{}',
      rule: { ...rule, key: `key ${n}` } as KeyRule,
    }),
  );
}

test.each([
  [debounce, 1],
  [debounce, 3],
  [throttle, 1],
  [throttle, 3],
  [trailing, 1],
  [trailing, 3],
] as const)('a bulk with %j in %i queues compares each job with a few rows', async (rule, queues) => {
  const jobs = jobsOf(rule, queues);
  const query =
    rule.type === 'debounce'
      ? insertWaitingJobsQuery(tables, { ...rule, key: '' }, jobs)
      : rule.trailing
        ? insertTrailingJobsQuery(known, 60_000, jobs)
        : insertLimitedJobsQuery(known, 60_000, jobs);
  expect(await looksOf(query)).toBeLessThan(MOST_ROWS);
});

test.each([1, 3])('the same in %i queues where half of the keys are taken', async (queues) => {
  const half = (rule: typeof throttle | typeof trailing) =>
    jobsOf(rule, queues).filter((_, n) => n % 2 === 0);
  await insertLimitedJobs(database.db, known, 60_000, half(throttle));
  expect(await looksOf(insertLimitedJobsQuery(known, 60_000, jobsOf(throttle, queues)))).toBeLessThan(
    MOST_ROWS,
  );
  await database.client`delete from queue_keys`;
  await insertTrailingJobs(database.db, known, 60_000, half(trailing));
  expect(await looksOf(insertTrailingJobsQuery(known, 60_000, jobsOf(trailing, queues)))).toBeLessThan(
    MOST_ROWS,
  );
});

/** The rows that all nodes of a statement's plan have read and passed on, or looked at in vain. */
async function looksOf(query: Parameters<typeof explain>[1]): Promise<number> {
  const nodes = nodesOf(await explain(database, query, 'force_custom_plan')) as Looks[];
  const most = nodes.map((node) => {
    const inVain = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0);
    return (node['Actual Rows'] + inVain) * node['Actual Loops'];
  });
  return Math.max(...most);
}

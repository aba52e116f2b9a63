import { beforeAll, describe, expect, test } from 'vitest';
import type { NewJob } from '../../src/core/job/new-job.ts';
import { findStandingJobsQuery } from '../../src/core/queries/enqueue/find-standing-jobs.ts';
import { queueKeys } from '../../src/features/control/index.ts';
import { insertLimitedJobsQuery } from '../../src/features/keys/queries/insert-limited-jobs.ts';
import { insertTrailingJobsQuery } from '../../src/features/keys/queries/insert-trailing-jobs.ts';
import { insertWaitingJobsQuery } from '../../src/features/keys/queries/insert-waiting-jobs.ts';
import { pruneKeysQuery } from '../../src/features/keys/queries/prune-keys.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, explain, nodesOf } from './support/explain.ts';
import { tables } from './support/jobs.ts';

const database = useTestDatabase({ max: 1 });

beforeAll(async () => {
  await addControlTables(database);
  const { client } = database;
  // Known to the planner as empty, which is the worst that it can know.
  await client.unsafe('analyze queue_jobs; analyze queue_keys');
  await client`
    insert into queue_jobs (queue, kind, payload, max_attempts, run_at, waiting_key)
    select 'q', 'k', '{"n": 1}', 20, now() + interval '1 day', case n % 10
      when 0 then 'key ' || n when 5 then 'throttle:key ' || n - 5 end
    from generate_series(1, 1000000) as n`;
  await client`
    insert into queue_keys (queue, kind, key, until)
    select 'q', 'k', 'key ' || n, now() + (n - 1000) * interval '1 s' from generate_series(1, 100000) as n`;
}, 300_000);

const job: NewJob = {
  queue: 'q',
  kind: 'k',
  payload: '{"n":2}',
  priority: 5,
  maxAttempts: 20,
  delayMs: 0,
  runAtMs: null,
  uniqueKey: null,
  metadata: '{}',
};
const debounce = { type: 'debounce', key: '', maxWaitMs: 30_000 } as const;
const waiting = { type: 'waiting', key: '' } as const;
const throttle = { type: 'throttle', key: '', perMs: 60_000, trailing: false } as const;
const known = { tables, keys: queueKeys };

/** Of so many jobs whose keys are taken, and as many whose keys are free. */
function statements(count: number) {
  const keys = Array.from({ length: count }, (_, n) => [`key ${(n + 500) * 100}`, `free ${n}`]).flat();
  const jobs = keys.map((key) => ({ ...job, rule: { ...throttle, key } }));
  const waitingJobs = keys.map((key) => ({ ...job, rule: { ...waiting, key } }));
  return {
    debounce: insertWaitingJobsQuery(tables, debounce, jobs),
    'unique until the first claim': insertWaitingJobsQuery(tables, waiting, waitingJobs),
    'the look for who waits': findStandingJobsQuery(tables, waitingJobs),
    throttle: insertLimitedJobsQuery(known, 60_000, jobs),
    'trailing throttle': insertTrailingJobsQuery(known, 60_000, jobs),
  };
}

describe.each(['stale statistics', 'after an ANALYZE'])(
  '%s, 1,000,000 jobs and 100,000 keys',
  (statistics) => {
    beforeAll(async () => {
      if (statistics === 'stale statistics') return;
      await database.client`vacuum analyze queue_jobs`;
      await database.client`vacuum analyze queue_keys`;
    }, 120_000);

    describe.each(['force_custom_plan', 'force_generic_plan'] as const)('%s', (mode) => {
      test.each(Object.entries(statements(1)))('%s of two reads a few pages', async (_, query) => {
        const plan = await explain(database, query, mode);
        expect(buffersOf(plan)).toBeLessThan(300);
        expect(nodesOf(plan).filter((node) => node['Node Type'] === 'Seq Scan' && isOurs(node))).toEqual([]);
      });

      test.each(Object.entries(statements(100)))('%s of 200 reads a few pages for each', async (_, query) => {
        const plan = await explain(database, query, mode);
        expect(buffersOf(plan)).toBeLessThan(15_000);
      });

      test('a prune reads the oldest', async () => {
        const plan = await explain(database, pruneKeysQuery(known, 100), mode);
        expect(buffersOf(plan)).toBeLessThan(2_500);
      });
    });
  },
);

function isOurs(node: { readonly 'Relation Name'?: string }): boolean {
  return node['Relation Name'] === 'queue_jobs' || node['Relation Name'] === 'queue_keys';
}

import { beforeAll, describe, expect, test } from 'vitest';
import { findDueQuery } from '../../src/core/queries/claim/find-due.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, explain, nodesOf, type PlanMode } from './support/explain.ts';
import { clearTables, tables } from './support/jobs.ts';
import { type Backend, twoBackends } from './support/locks.ts';

const database = useTestDatabase();

describe.sequential('the plan of findDue', () => {
  let backend: Backend;
  const queues = Array.from({ length: 50 }, (_, n) => `q${n}`);
  const modes: PlanMode[] = ['force_custom_plan', 'force_generic_plan'];
  const looks = modes.flatMap((mode) =>
    [1, 50].map((count) => [`${mode}, ${count} queues`, mode, count] as const),
  );

  beforeAll(async () => {
    [backend] = await twoBackends(database);
    await clearTables(database.client);
    await database.client`alter table queue_jobs set (autovacuum_enabled = off)`;
  });

  /** One index range per queue and priority, of which one row is read. */
  async function expectRanges(mode: PlanMode, count: number, floorMs = Number.NEGATIVE_INFINITY) {
    const asked = queues.slice(0, count).map((queue) => ({ queue, floorMs }));
    const plan = await explain(
      backend,
      findDueQuery(tables, { looks: asked, kinds: ['k'], horizonMs: 2_000 }),
      mode,
    );
    const scans = nodesOf(plan).filter((node) => node['Relation Name'] === 'queue_jobs');
    expect(scans.map((node) => [node['Node Type'], node['Index Name']])).toEqual([
      ['Index Scan', 'queue_jobs_claim_idx'],
    ]);
    expect(scans[0]?.['Index Cond']).toMatch(
      /priority = .* AND \(queue = (i\.queue|.+::text|\$5)\) AND \(run_at >= i\.floor\)/,
    );
    expect(scans[0]?.['Actual Loops']).toBe(10 * count);
    // Measured: 2 pages per range of an empty table, 3 or 4 of a million jobs.
    expect(buffersOf(plan)).toBeLessThanOrEqual(20 + 50 * count);
  }

  describe('of an empty table that was never analysed', () => {
    test.each(looks)('%s', (_, ...args) => expectRanges(...args));
  });

  describe('with 1,000,000 due jobs', () => {
    beforeAll(async () => {
      await fill('k', `now() - interval '1 day' + n * interval '1 ms'`);
    });

    test.each(looks)('%s', (_, ...args) => expectRanges(...args));
  });

  describe('with 1,000,000 due jobs of another kind, from the floor', () => {
    beforeAll(async () => {
      await database.client`truncate queue_jobs`;
      await fill('other', `now() - interval '1 day' + n * interval '1 ms'`);
    });

    test.each(looks)('%s', (_, ...args) => expectRanges(...args, Date.now() - 1_000));
  });

  describe('with 1,000,000 scheduled jobs', () => {
    beforeAll(async () => {
      await database.client`truncate queue_jobs`;
      await fill('k', `now() + interval '1 day' + n * interval '1 ms'`);
      await database.client`analyze queue_jobs`;
    });

    test.each(looks)('%s', (_, ...args) => expectRanges(...args));
  });

  async function fill(kind: string, runAt: string): Promise<void> {
    await database.client.unsafe(`
      insert into queue_jobs (queue, kind, payload, max_attempts, priority, run_at)
      select 'q' || n % 50, '${kind}', 'null', 20, n % 10, ${runAt} from generate_series(1, 1000000) as n`);
  }
});

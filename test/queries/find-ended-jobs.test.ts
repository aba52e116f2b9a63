import { beforeAll, describe, expect, test } from 'vitest';
import {
  type EndedJobs,
  findEndedJobs,
  findEndedJobsQuery,
  findEndOfEnds,
} from '../../src/core/queries/browse/find-ended-jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, explain, nodesOf } from './support/explain.ts';
import { tables } from './support/jobs.ts';
import { type Backend, twoBackends } from './support/locks.ts';

const database = useTestDatabase();
const everything = { payload: [], own: [] };
const all: EndedJobs = { search: everything, after: { endedUs: 0, id: 0 }, limit: 10 };

describe('with 200,000 results, the oldest ids of which have ended last', () => {
  let one: Backend;
  let other: Backend;

  beforeAll(async () => {
    [one, other] = await twoBackends(database);
    await database.client`
      insert into queue_results (job_id, queue, kind, payload, state, attempt, max_attempts, priority, fence,
        metadata, created_at, run_at, finished_at, errors)
      select n, 'q', case when n % 50000 = 0 then 'rare' else 'k' end, to_jsonb(n), 'completed', 1, 20, 5, 1,
        '{}', now(), now(), now() - (n / 2) * interval '1 ms', '[]'
      from generate_series(1, 200000) as n`;
    await database.client`vacuum analyze queue_results`;
  }, 120_000);

  const idsOf = (found: Awaited<ReturnType<typeof findEndedJobs>>) => found.records.map(({ id }) => id);

  test('they come in the order of their ends, each once, also those of one moment', async () => {
    const first = await findEndedJobs(database.db, tables, { ...all, limit: 3 });
    // Of two that ended at one time the smaller id is first.
    expect(idsOf(first)).toEqual([200_000, 199_998, 199_999]);
    const next = await findEndedJobs(database.db, tables, { ...all, after: first.last, limit: 3 });
    expect(idsOf(next)).toEqual([199_996, 199_997, 199_994]);
    expect(next.read).toBe(3);
  });

  test('what does not fit is passed over once', async () => {
    const search = { ...everything, kind: 'rare' };
    const found: number[] = [];
    let [after, read] = [all.after, 1];
    while (read > 0) {
      const page = await findEndedJobs(database.db, tables, { ...all, search, after, limit: 70_000 });
      found.push(...idsOf(page));
      ({ last: after, read } = page);
    }
    expect(found).toEqual([200_000, 150_000, 100_000, 50_000]);
    expect(await findEndedJobs(database.db, tables, { ...all, search, after })).toMatchObject({
      records: [],
      read: 0,
      last: after,
    });
  });

  test('a page reads no more than itself', async () => {
    const { last } = await findEndedJobs(database.db, tables, { ...all, limit: 100_000 });
    for (const mode of ['force_custom_plan', 'force_generic_plan'] as const) {
      const plan = await explain(
        one,
        findEndedJobsQuery(tables, { ...all, after: last, limit: 1_000 }),
        mode,
      );
      const indexes = nodesOf(plan).flatMap((node) => node['Index Name'] ?? []);
      expect(new Set(indexes)).toEqual(new Set(['queue_results_finished_at_idx']));
      expect(buffersOf(plan)).toBeLessThan(5_000);
    }
  });

  test('an end that has not committed yet is in front of nothing that is passed', async () => {
    const { db } = other;
    const before = await findEndOfEnds(database.db, tables);
    await db.transaction(async (tx) => {
      await tx.execute(`
        insert into queue_results (job_id, queue, kind, payload, state, attempt, max_attempts, priority, fence,
          metadata, created_at, run_at, finished_at, errors)
        values (300000, 'q', 'late', 'null', 'completed', 1, 1, 5, 1, '{}', now(), now(), now(), '[]')`);
      const open = await findEndOfEnds(database.db, tables);
      const beside = await findEndedJobs(database.db, tables, {
        ...all,
        search: { ...everything, kind: 'late' },
        after: before,
      });
      expect(beside.records).toEqual([]);
      expect(open.endedUs).toBeGreaterThan(before.endedUs - 60_000_000);
      // Its time is later than this place, so who goes on from here finds it.
      const [row] = await tx.execute<{ us: number }>(
        'select (extract(epoch from now()) * 1000000)::float8 as us',
      );
      expect(open.endedUs).toBeLessThanOrEqual(Number(row?.us));
    });
  });
});

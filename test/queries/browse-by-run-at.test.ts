import { beforeAll, describe, expect, test } from 'vitest';
import { browseByRunAt, findReadEnd } from '../../src/core/queries/browse/browse-by-run-at.ts';
import { findBands } from '../../src/core/queries/browse/find-bands.ts';
import { FIRST_PLACE, isBefore, type JobPlace } from '../../src/core/sql/job-place.ts';
import type { LiveState } from '../../src/core/sql/job-record.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { clearTables, tables } from './support/jobs.ts';

const database = useTestDatabase();
const scope = { queues: undefined, own: [] };
const MANY = 1_000;
const LIMIT = 6;

/**
 * 40 groups and 3 plain queues, each of 2 priorities, whose jobs are due one after the other in no order of ids. Those
 * of ten groups are all scheduled, and of every queue some; of the others a quarter runs.
 */
async function addBands(): Promise<void> {
  await clearTables(database.client);
  await database.client`
    insert into queue_jobs (queue, kind, payload, max_attempts, priority, group_key, run_at, worker_id)
    select 'q' || n % 3, 'k' || n % 17, '{}', 20, 4 + n % 2, case when n % 5 <> 0 then 'g' || n % 40 end,
      now() - (n * 7919 % 601) * interval '1 s' + case when n % 40 >= 30 then interval '1 h' else '0' end,
      case when n % 40 < 30 and n % 7 < 2 then 1 end
    from generate_series(1, 800) as n`;
}

async function pages(state: LiveState, kind: string | undefined, bound: number) {
  const bands = await findBands(database.db, tables, { queues: undefined, group: undefined, limit: MANY });
  const search = { kind, payload: [], own: [] };
  const ids: number[] = [];
  let stops = 0;
  let after: JobPlace = FIRST_PLACE;
  for (;;) {
    const read = { state, bands, after, bound };
    const found = await browseByRunAt(database.db, tables, {
      ...read,
      search,
      scope,
      excerpt: 10,
      limit: LIMIT,
    });
    const last = found.at(-1)?.place;
    const everywhere = await findReadEnd(database.db, tables, read);
    const until = found.length === LIMIT ? last : undefined;
    const end = await findReadEnd(database.db, tables, { ...read, until });
    // An end behind a full page is not looked for; one on it is the same.
    const matters = everywhere !== undefined && (until === undefined || !isBefore(until, everywhere));
    expect(end).toEqual(matters ? everywhere : undefined);
    const seen = found.filter(({ place }) => end === undefined || !isBefore(end, place));
    ids.push(...seen.map(({ job }) => job.id));
    expect(new Set(ids).size, 'a job is on two pages').toBe(ids.length);
    if (end !== undefined) stops++;
    const next: JobPlace | undefined = end ?? (found.length === LIMIT ? last : undefined);
    if (next === undefined) return { ids, stops, bands: bands.length };
    after = next;
  }
}

describe('pages of jobs in the order in which they are due', () => {
  beforeAll(addBands);

  test.each([
    ['all due jobs, each band to its end', 'due', undefined, MANY, false],
    ['all due jobs, a few of each band at a time', 'due', undefined, 3, false],
    ['one kind, each band to its end', 'due', 'k3', MANY, false],
    ['one kind, a few of each band at a time', 'due', 'k3', 3, true],
    ['a kind that no job has', 'due', 'none', 3, true],
    ['all that run, each band to its end', 'running', undefined, MANY, false],
    ['all that run, a few of each band at a time', 'running', undefined, 3, true],
    ['all scheduled jobs, each band to its end', 'scheduled', undefined, MANY, false],
    ['all scheduled jobs, a few of each band at a time', 'scheduled', undefined, 3, false],
  ] as const)('%s: each once, the longest due first', async (_, state, kind, bound, searchesOn) => {
    const expected = await database.client<{ id: string }[]>`
      select id from queue_jobs where (${kind ?? null}::text is null or kind = ${kind ?? null}::text)
        and case when worker_id is not null then 'running' when run_at > now() then 'scheduled' else 'due' end = ${state}
      order by run_at, id`;
    expect(kind === 'none' || expected.length > LIMIT).toBe(true);
    const { ids, stops, bands } = await pages(state, kind, bound);
    expect(bands).toBeGreaterThan(LIMIT);
    expect(ids).toEqual(expected.map(({ id }) => Number(id)));
    expect(stops > 0).toBe(searchesOn);
  });
});

describe('pages of jobs that are due at times of which a float has not every microsecond', () => {
  const FAR = [
    '-infinity',
    '4714-11-24 00:00:00+00 BC',
    '0044-03-15 12:00:00.000001+00 BC',
    '1969-12-31 23:59:59.999999+00',
    '2255-06-05 23:47:34.740993+00',
    '9999-12-31 23:59:59.999999+00',
    '20267-01-01 00:00:00.123457+00',
    '294246-12-31 23:59:59.999999+00',
    'infinity',
  ];
  beforeAll(async () => {
    await clearTables(database.client);
    await database.client`
      insert into queue_jobs (queue, kind, payload, max_attempts, run_at)
      select 'far', 'k', '{}', 20, t from generate_series(1, 20) as n, unnest(${FAR}::text[]::timestamptz[]) as t`;
  });

  test.each([
    ['due', MANY],
    ['due', 3],
    ['scheduled', MANY],
    ['scheduled', 3],
    ['waiting', 3],
  ] as const)('%s, %d at a time: each once', async (state, bound) => {
    const expected = await database.client<{ id: string }[]>`
      select id from queue_jobs
      where case when run_at <= now() then 'due' when run_at < 'infinity' then 'scheduled' else 'waiting' end = ${state}
      order by run_at, id`;
    expect(expected.length).toBeGreaterThanOrEqual(20);
    const { ids } = await pages(state, undefined, bound);
    expect(ids).toEqual(expected.map(({ id }) => Number(id)));
  });
});

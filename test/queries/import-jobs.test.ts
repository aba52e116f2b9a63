import { sql } from 'drizzle-orm';
import { createQueue, defineJob, drain, handle, limitsIn } from 'drizzle-queue';
import { queueJobs, queuePauses, queueResults, queueWorkers } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import { beforeEach, expect, test } from 'vitest';
import { carryOverJobs } from '../../src/entries/import/queries/carry-over-jobs.ts';
import { findImportedJobs } from '../../src/entries/import/queries/find-imported-jobs.ts';
import {
  IMPORT_MARK,
  releaseImportedJobs,
  releaseImportedJobsQuery,
} from '../../src/entries/import/queries/release-imported-jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { clearTables } from './support/jobs.ts';

const database = useTestDatabase();
const tables = { queueJobs, queueResults, queueWorkers, queuePauses };
const queue = createQueue();
const send = defineJob('send', { queue: 'mail' });

beforeEach(() => clearTables(database.client));

/** Jobs that an importer has written, and not yet let run. */
async function parked(...keys: (string | null)[]): Promise<number[]> {
  const enqueued = await queue.enqueueMany(
    database.db,
    send,
    keys.map((uniqueKey, index) => ({
      runAt: new Date('9999-12-31'),
      uniqueKey: `import ${index}`,
      metadata: { kept: true, [IMPORT_MARK]: { source: 'there', id: `${index}`, runAtMs: 1_000, uniqueKey } },
    })),
  );
  return enqueued.map(({ id }) => id);
}

async function rows() {
  return await database.client`
    select id::int, unique_key, metadata::text, extract(epoch from run_at)::int as run_at, attempt
    from queue_jobs order by id`;
}

test('a release gives a job its time and its key; a key that is taken is left out', async () => {
  await queue.enqueue(database.db, send, undefined, { uniqueKey: 'taken' });
  const ids = await parked('free', 'taken', 'twice', 'twice', null);
  const marked = await findImportedJobs(database.db, tables, { source: 'there', after: 0, limit: 3 });
  expect(marked).toEqual(ids.slice(0, 3).map((id, index) => ({ id, queue: 'mail', foreignId: `${index}` })));
  expect(await findImportedJobs(database.db, tables, { source: 'here', after: 0, limit: 3 })).toEqual([]);
  expect((await releaseImportedJobs(database.db, tables, { queue: 'mail', ids })).sort()).toEqual(ids);
  const found = (await rows()).slice(1);
  expect(found.map(({ unique_key }) => unique_key)).toEqual(['free', null, 'twice', null, null]);
  for (const row of found) expect(row).toMatchObject({ metadata: '{"kept": true}', run_at: 1 });
  expect(await releaseImportedJobs(database.db, tables, { queue: 'mail', ids })).toEqual([]);
});

test('a key that is taken is looked up in the unique index, whatever else the queue holds', async () => {
  const ids = await parked('a');
  const plan = await database.db.transaction(async (tx) => {
    await tx.execute(sql`set local enable_seqscan = off`);
    return await tx.execute(
      sql`explain (costs off) ${releaseImportedJobsQuery(tables, { queue: 'mail', ids })}`,
    );
  });
  expect(JSON.stringify(plan)).toMatch(
    /Cond: \(\(queue = 'mail'::text\) AND \(kind = ANY [^"]* AND \(unique_key = ANY /,
  );
});

test('a job is released once: who comes second waits, and finds it done', async () => {
  const ids = await parked('a', 'b');
  const [first, second] = await database.connect(2);
  if (first === undefined || second === undefined) throw new Error('there are no connections');
  let later: Promise<number[]> | undefined;
  await first.db.transaction(async (tx) => {
    expect(await releaseImportedJobs(tx, tables, { queue: 'mail', ids })).toHaveLength(2);
    later = releaseImportedJobs(second.db, tables, { queue: 'mail', ids });
    await until(async () => {
      const [row] = await database.client`
        select count(*)::int as waiting from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      return row?.waiting === 1;
    });
  });
  expect(await later).toEqual([]);
  expect((await rows()).map(({ unique_key }) => unique_key)).toEqual(['a', 'b']);
});

test('what a job brings along is written before others see it, and never to a job that has been claimed', async () => {
  const [other] = await database.connect();
  if (other === undefined) throw new Error('there is no connection');
  await database.db.transaction(async (tx) => {
    const { id } = await queue.enqueue(tx, send);
    expect(await carryOverJobs(tx, tables, 'mail', [{ id, attempt: 3, createdAtMs: 5_000 }])).toBe(1);
    expect(await carryOverJobs(tx, tables, 'other', [{ id, attempt: 4, createdAtMs: undefined }])).toBe(0);
    expect(await other.client`select from queue_jobs`).toHaveLength(0);
  });
  const [row] =
    await database.client`select id::int, attempt, extract(epoch from created_at)::int as at from queue_jobs`;
  expect(row).toMatchObject({ attempt: 3, at: 5 });
  await database.client`update queue_jobs set attempt = 1`;
  expect(
    await carryOverJobs(database.db, tables, 'mail', [{ id: row?.id, attempt: 0, createdAtMs: 1 }]),
  ).toBe(0);
});

test('in a queue with groups a released job is found by claims', async () => {
  await addControlTables(database);
  const grouped = createQueue({ limits: limitsIn(control, { mail: { groups: { concurrency: 1 } } }) });
  const mark = { source: 'there', id: '1', runAtMs: 1_000, uniqueKey: null };
  const { id } = await grouped.enqueue(database.db, send, undefined, {
    group: 'tenant',
    runAt: new Date('9999-12-31'),
    metadata: { [IMPORT_MARK]: mark },
  });
  const done: number[] = [];
  const work = () =>
    drain(database.db, {
      queue: grouped,
      deadlineMs: 20_000,
      handlers: [handle(send, ({ job }) => void done.push(job.id))],
    });
  await work();
  expect(done).toEqual([]);
  expect(await releaseImportedJobs(database.db, grouped.tables, { queue: 'mail', ids: [id] })).toEqual([id]);
  await work();
  expect(done).toEqual([id]);
});

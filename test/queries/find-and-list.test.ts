import { beforeEach, expect, test } from 'vitest';
import { findHeldJobs } from '../../src/core/queries/hold/find-held-jobs.ts';
import { findJob } from '../../src/core/queries/operate/find-job.ts';
import { listJobs } from '../../src/core/queries/operate/list-jobs.ts';
import { redriveJobs } from '../../src/core/queries/operate/redrive-jobs.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJob, addJobs, claim, clearTables, idsOf, tables } from './support/jobs.ts';
import { begin, commit, twoBackends } from './support/locks.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const held = { queue: 'q', workerId: 1 };
const discarded = {
  type: 'finish',
  state: 'discarded',
  output: null,
  error: null,
  keepResult: true,
} as const;
const firstPage = { kind: undefined, queue: undefined, state: undefined, before: undefined, limit: 1_000 };

test('a job that moves between the tables all the time is always found, and always listed once', async () => {
  const ids = await addJobs(
    database.client,
    Array.from({ length: 20 }, () => ({})),
  );
  const [{ db: mover }, { db: reader }] = await twoBackends(database);
  const newestFirst = ids.toReversed();
  let reading = true;
  const move = async (): Promise<number> => {
    let moves = 0;
    for (; reading; moves++) {
      const jobs = await claim(mover, { limit: 20 });
      await finishJobs(
        mover,
        tables,
        held,
        jobs.map(({ id, fence }) => ({ id, fence, transition: discarded })),
      );
      await redriveJobs(mover, tables, {});
    }
    return moves;
  };
  const read = async (): Promise<Set<unknown>> => {
    const states = new Set<unknown>();
    try {
      for (let round = 0; round < 150; round++) {
        const { records: listed } = await listJobs(reader, tables, firstPage);
        expect(idsOf(listed)).toEqual(newestFirst);
        for (const { state } of listed) states.add(state);
        const found = await findJob(reader, tables, ids[round % 20] ?? 0);
        expect(found?.id).toBe(ids[round % 20]);
        states.add(found?.state);
      }
    } finally {
      reading = false;
    }
    return states;
  };
  const [moves, states] = await Promise.all([move(), read()]);
  // Otherwise nothing was tested.
  expect(moves).toBeGreaterThan(1);
  expect(states).toContain('discarded');
  expect([...states].some((state) => state === 'due' || state === 'running')).toBe(true);
});

test('a move that is not committed is not seen', async () => {
  const id = await addJob(database.client, { workerId: 1 });
  const [one] = await twoBackends(database);
  await begin(one);
  await finishJobs(one.db, tables, held, [{ id, fence: 0, transition: discarded }]);
  expect(await findJob(database.db, tables, id)).toMatchObject({ state: 'running' });
  expect(await findJob(one.db, tables, id)).toMatchObject({ state: 'discarded' });
  expect((await listJobs(one.db, tables, firstPage)).records).toMatchObject([{ id, state: 'discarded' }]);
  await commit(one);
  expect(await findJob(database.db, tables, id)).toMatchObject({ state: 'discarded' });
});

test('findHeldJobs: those that this worker holds under just this fence', async () => {
  const [own, older, others, waiting, elsewhere] = await addJobs(database.client, [
    { workerId: 1, fence: 2 },
    { workerId: 1, fence: 3 },
    { workerId: 2, fence: 2 },
    { fence: 2 },
    { workerId: 1, fence: 2, queue: 'other' },
  ]);
  const asked = [own, older, others, waiting, elsewhere, 999_999].map((id) => ({ id, fence: 2 }));
  expect(await findHeldJobs(database.db, tables, held, asked)).toEqual(new Map([[own, 2]]));
  const byLock = { ...held, workerId: null };
  expect(await findHeldJobs(database.db, tables, byLock, asked)).toEqual(new Map([[waiting, 2]]));
});

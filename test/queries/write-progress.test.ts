import { beforeEach, describe, expect, test } from 'vitest';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { writeProgress } from '../../src/core/queries/settle/write-progress.ts';
import type { Executor } from '../../src/core/sql/executor.ts';
import type { Holder } from '../../src/core/sql/fence.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addJob, addJobs, clearTables, jobRow, resultRow, tables } from './support/jobs.ts';
import { begin, commit, rollback, twoBackends } from './support/locks.ts';

const database = useTestDatabase();

beforeEach(() => clearTables(database.client));

const write = (
  db: Executor,
  ids: readonly number[],
  { progress = '50', fence = 3, ...held }: { progress?: string; fence?: number } & Partial<Holder> = {},
) =>
  writeProgress(
    db,
    tables,
    { queue: 'q', workerId: 1, ...held },
    ids.map((id) => ({ id, fence, progress })),
  );

describe('progress', () => {
  test.each([
    ['a number', '42', 42],
    ['an object', '{"done": 1, "of": [2, "ü"]}', { done: 1, of: [2, 'ü'] }],
    ['null', 'null', null],
    ['a text', '"a"', 'a'],
    ['an array', '[1, 2]', [1, 2]],
  ])('is written, and nothing else is changed: %s', async (_, progress, value) => {
    const [id, other] = await addJobs(database.client, [
      { workerId: 1, fence: 3 },
      { workerId: 1, fence: 3 },
    ]);
    const before = await jobRow(database.client, id);
    const beside = await jobRow(database.client, other);
    expect(await write(database.db, [id], { progress })).toEqual(new Set([id]));
    expect(await jobRow(database.client, id)).toEqual({ ...before, progress: value });
    expect(await jobRow(database.client, other)).toEqual(beside);
  });

  test('of many jobs goes to each its own', async () => {
    const ids = await addJobs(
      database.client,
      Array.from({ length: 50 }, () => ({ workerId: 1, fence: 3 })),
    );
    const jobs = ids.map((id, n) => ({ id, fence: 3, progress: String(n) }));
    const written = await writeProgress(database.db, tables, { queue: 'q', workerId: 1 }, jobs.toReversed());
    expect(written).toEqual(new Set(ids));
    for (const [n, id] of ids.entries())
      expect(await jobRow(database.client, id)).toMatchObject({ progress: n });
  });

  test.each([
    ['under an older fence', { fence: 2 }],
    ['under a fence that nobody has given yet', { fence: 4 }],
    ['by another worker', { workerId: 2 }],
    ['as a job of another queue', { queue: 'other' }],
  ])('is fenced: nothing is changed %s', async (_, held) => {
    const id = await addJob(database.client, { workerId: 1, fence: 3 });
    const before = await jobRow(database.client, id);
    expect(await write(database.db, [id], held)).toEqual(new Set());
    expect(await jobRow(database.client, id)).toEqual(before);
  });

  test('waits for nobody: a locked job is left out, the others are written', async () => {
    const [locked, free] = await addJobs(database.client, [
      { workerId: 1, fence: 3 },
      { workerId: 1, fence: 3 },
    ]);
    const [one, two] = await twoBackends(database);
    await begin(one);
    // As the handler's own `complete(tx)` does.
    await finishJobs(one.db, tables, { queue: 'q', workerId: 1 }, [
      {
        id: locked,
        fence: 3,
        transition: { type: 'finish', state: 'completed', output: '1', error: null, keepResult: true },
      },
    ]);
    expect(await write(two.db, [locked, free])).toEqual(new Set([free]));
    await rollback(one);
    expect(await write(two.db, [locked], { progress: '51' })).toEqual(new Set([locked]));
    await begin(one);
    await write(one.db, [locked]);
    await commit(one);
    expect(await resultRow(database.client, locked)).toBeUndefined();
  });
});

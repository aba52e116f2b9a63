import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { pruneGroups } from '../../src/features/limits/queries/prune-groups.ts';
import { setLimit } from '../../src/features/limits/queries/set-limit.ts';
import type { LimitOverride } from '../../src/features/limits/settings/limit-record.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { addGrouped, addWorkers, claimGroups, clearGroups, groupedTables } from './support/groups.ts';
import { idsOf } from './support/jobs.ts';

const database = useTestDatabase();
let worker = 0;
beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await clearGroups(database.client);
  [worker = 0] = await addWorkers(database.client);
});

const claim = (options?: Parameters<typeof claimGroups>[2]) => claimGroups(database.db, worker, options);

async function set(group: string, override: LimitOverride) {
  await setLimit(database.db, groupedTables(), { queue: 'q', kind: '', group, override }, undefined);
}

describe('a limit that was changed is heeded by the next claim', () => {
  const one = { limits: { concurrency: 1 } };
  const hourly = { limits: { rate: { limit: 1, perMs: 3_600_000 } } };

  test.each(['a', '*'])('a higher concurrency of %s', async (group) => {
    const [first, second] = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
    expect(idsOf((await claim(one)).jobs)).toEqual([first]);
    expect((await claim(one)).jobs).toEqual([]);
    await set(group, { concurrency: 2 });
    expect(idsOf((await claim(one)).jobs)).toEqual([second]);
  });

  test.each(['a', '*'])('a higher rate of %s', async (group) => {
    const [first, second] = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
    expect(idsOf((await claim(hourly)).jobs)).toEqual([first]);
    expect((await claim(hourly)).jobs).toEqual([]);
    await set(group, { rate: { limit: 2, perMs: 3_600_000 } });
    expect(idsOf((await claim(hourly)).jobs)).toEqual([second]);
  });

  test('a lower one that is removed', async () => {
    await set('a', { concurrency: 1 });
    const [first, second] = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
    expect(idsOf((await claim()).jobs)).toEqual([first]);
    const limit = { queue: 'q', kind: '', group: 'a', override: null };
    expect(await setLimit(database.db, groupedTables(), limit, undefined)).toBe(undefined);
    expect(idsOf((await claim()).jobs)).toEqual([second]);
  });

  test('a higher one of a group that was unknown when it was set, although others use it before the commit', async () => {
    let second: number | undefined;
    await database.db.transaction(async (tx) => {
      const limit = { queue: 'q', kind: '', group: 'a', override: { concurrency: 2 } };
      await setLimit(tx, groupedTables(), limit, undefined);
      const [first, next] = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
      second = next;
      expect(idsOf((await claim(one)).jobs)).toEqual([first]);
      expect((await claim(one)).jobs).toEqual([]);
    });
    expect(idsOf((await claim(one)).jobs)).toEqual([second]);
  });

  test('one in a transaction that rolls back is not', async () => {
    const [first] = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
    expect(idsOf((await claim(one)).jobs)).toEqual([first]);
    const undone = database.db.transaction(async (tx) => {
      await setLimit(
        tx,
        groupedTables(),
        { queue: 'q', kind: '', group: 'a', override: { concurrency: 2 } },
        undefined,
      );
      throw new Error('undo');
    });
    await expect(undone).rejects.toThrow('undo');
    expect((await claim(one)).jobs).toEqual([]);
  });
});

test.each([
  ['a longer', 3_600_000, 7_200_000],
  ['a shorter', 7_200_000, 3_600_000],
])('%s window counts what has started in the one before', async (_, before, after) => {
  const rate = (perMs: number) => ({ limits: { rate: { limit: 2, perMs } } });
  await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }, { group: 'a' }, { group: 'a' }]);
  expect((await claim({ ...rate(before), limit: 1 })).jobs).toHaveLength(1);
  expect((await claim(rate(after))).jobs).toHaveLength(1);
  expect((await claim(rate(after))).jobs).toEqual([]);
});

test('a window that was much shorter ends as well', async () => {
  const rate = (perMs: number) => ({ limits: { rate: { limit: 1, perMs } } });
  const [first, second] = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
  expect(idsOf((await claim(rate(100))).jobs)).toEqual([first]);
  await new Promise((resolve) => setTimeout(resolve, 450));
  expect(idsOf((await claim(rate(400))).jobs)).toEqual([second]);
});

test('what is used of a rate stays used when a process that knows of none claims, or removes groups', async () => {
  const hourly = { limits: { rate: { limit: 1, perMs: 3_600_000 } } };
  const [first, second] = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
  expect(idsOf((await claim(hourly)).jobs)).toEqual([first]);
  // As in a deployment that adds the rate. The group is offered to the other version by a note.
  await addGrouped(database.client, [{ group: 'a' }]);
  expect(idsOf((await claim({ limit: 1 })).jobs)).toEqual([second]);
  expect((await claim(hourly)).jobs).toEqual([]);
  await database.client`delete from queue_jobs`;
  await database.client`update queue_groups set ready_at = 'infinity'`;
  await pruneGroups(database.db, groupedTables(), { queue: 'q', after: '', ratePerMs: undefined });
  await addGrouped(database.client, [{ group: 'a' }]);
  expect((await claim(hourly)).jobs).toEqual([]);
});

test('jobs of a kind that others serve do not use up the rate of their group', async () => {
  const rated = { limits: { rate: { limit: 2, perMs: 3_600_000 }, run: 3 } };
  const other = { group: 'a', kind: 'other' };
  const [first, second] = await addGrouped(database.client, [other, other]);
  expect((await claim(rated)).jobs).toEqual([]);
  expect(idsOf((await claim({ ...rated, kinds: ['other'] })).jobs)).toEqual([first, second]);
});

test('a worker that was declared gone leaves alone what it still runs; others take it', async () => {
  const [job] = await addGrouped(database.client, [{ group: 'a' }]);
  expect(idsOf((await claim()).jobs)).toEqual([job]);
  await database.client`delete from queue_workers where id = ${worker}`;
  await database.client`insert into queue_notes (queue, due_at, group_keys) values ('q', now(), '{a}')`;
  expect((await claim()).jobs).toEqual([]);
  const [other = 0] = await addWorkers(database.client);
  expect(idsOf((await claimGroups(database.db, other)).jobs)).toEqual([job]);
});

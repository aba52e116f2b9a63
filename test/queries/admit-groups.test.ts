import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { admitGroups, admitGroupsQuery } from '../../src/features/limits/queries/admit-groups.ts';
import { claimGroupedJobs } from '../../src/features/limits/queries/claim-grouped-jobs.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
import { buffersOf, explain, nodesOf } from './support/explain.ts';
import {
  addGrouped,
  addWorkers,
  clearGroups,
  groupClaimOf,
  groupedTables,
  groupRows,
} from './support/groups.ts';
import { begin, twoBackends, untilBlocked } from './support/locks.ts';

const database = useTestDatabase({ max: 4 });
const tables = groupedTables();
let worker = 0;
beforeAll(() => addControlTables(database));
beforeEach(async () => {
  await clearGroups(database.client);
  [worker = 0] = await addWorkers(database.client);
});

const admit = () => admitGroups(database.db, tables, 'q');
const keys = (count: number) => Array.from({ length: count }, (_, n) => `key-${n}`);

/** The groups of each note, in order. */
async function notes(): Promise<string[][]> {
  const rows = await database.client<{ group_keys: string[] }[]>`
    select group_keys from queue_notes order by due_at, id`;
  return rows.map(({ group_keys }) => group_keys.toSorted());
}

async function note(...groups: string[]): Promise<void> {
  await database.client`insert into queue_notes (queue, due_at, group_keys) values ('q', now(), ${groups})`;
}

/** Groups that claims have met, each with a due job. */
async function addKnown(...groups: string[]): Promise<void> {
  await addGrouped(
    database.client,
    groups.map((group) => ({ group })),
  );
  await database.client`delete from queue_notes`;
  await database.client`
    insert into queue_groups (queue, group_key, ready_at) select 'q', unnest(${groups}::text[]), 'infinity'`;
}

describe('groups that are new', () => {
  test('are claimed in their order once they are admitted', async () => {
    await addGrouped(
      database.client,
      keys(45).map((group) => ({ group })),
    );
    expect([await admit(), await notes()]).toEqual([45, []]);
    expect(Object.values(await groupRows(database.client)).map(({ ready }) => ready)).toEqual(
      keys(45).map(() => 'now'),
    );
    const taken: (string | undefined)[] = [];
    for (const limit of [10, 15, 20, 20]) {
      const claim = groupClaimOf(worker, { limit, limits: { concurrency: 1 } });
      const { jobs, signs } = await claimGroupedJobs(database.db, tables, claim);
      taken.push(...jobs.map(({ group }) => group));
      const more = taken.length < 45;
      expect([jobs.length, signs.has('more')]).toEqual([more ? limit : jobs.length, more]);
    }
    expect(taken.toSorted()).toEqual(keys(45).toSorted());
    expect(await admit()).toBe(0);
  });

  test('without a due job get no row', async () => {
    await note('a', 'b');
    expect([await admit(), await notes(), await groupRows(database.client)]).toEqual([2, [], {}]);
  });

  test('that another admission makes are waited for, and left to the next one', async () => {
    await addGrouped(database.client, [{ group: 'a' }, { group: 'b' }]);
    await database.client`delete from queue_notes`;
    await note('a');
    const [one, other] = await twoBackends(database);
    await begin(one);
    expect(await admitGroups(one.db, tables, 'q')).toBe(1);
    await note('a', 'b');
    const waiting = admitGroups(other.db, tables, 'q');
    await untilBlocked(database, other);
    await one.client.unsafe('commit');
    expect([await waiting, await notes()]).toEqual([1, [['a']]]);
    expect([await admit(), await notes()]).toEqual([1, []]);
    expect((await claimGroupedJobs(database.db, tables, groupClaimOf(worker))).jobs).toHaveLength(2);
  });
});

describe('a note of several groups', () => {
  test('is used up but for those that another transaction has locked', async () => {
    await addKnown('a', 'b', 'c');
    await note('a', 'b', 'c');
    const [one] = await twoBackends(database);
    await begin(one);
    await one.client`select from queue_groups where group_key in ('a', 'c') for update`;
    expect([await admit(), await notes()]).toEqual([1, [['a', 'c']]]);
    // Nothing is written for a note that no statement can heed.
    const row = async () => (await database.client`select ctid from queue_notes`)[0];
    const before = await row();
    expect(await admit()).toBe(0);
    expect(await row()).toEqual(before);
    await one.client`rollback`;
    expect([await admit(), await notes()]).toEqual([2, []]);
    expect(Object.values(await groupRows(database.client)).map(({ ready }) => ready)).toEqual([
      'now',
      'now',
      'now',
    ]);
  });

  test('that another admission has locked is passed over for the next', async () => {
    await addKnown('a', 'b');
    await note('a');
    await note('b');
    const [one] = await twoBackends(database);
    await begin(one);
    await one.client`select from queue_notes where 'a' = any(group_keys) for update`;
    expect([await admit(), await notes()]).toEqual([1, [['a']]]);
    await one.client`rollback`;
    expect(await admit()).toBe(1);
  });
});

test('under an old snapshot the versions of a group are passed once, not for each use of its row', async () => {
  const [reader, backend] = await twoBackends(database);
  const groups = keys(50);
  const versions = 40;
  await addKnown(...groups);
  await begin(reader, 'repeatable read');
  await reader.client`select count(*) from queue_limits`;
  for (let n = 0; n < versions; n++) {
    await note(...groups);
    expect(await admit()).toBe(groups.length);
  }
  await note(...groups);
  const plan = await explain(backend, admitGroupsQuery(tables, 'q'), 'force_custom_plan');
  const looks = nodesOf(plan).filter((node) => node['Index Name'] === 'queue_groups_pkey');
  const pages = looks.reduce((sum, node) => sum + buffersOf(node), 0);
  // Each version may be on a page of its own, and each look goes down the index. Three looks passed them three times.
  expect(pages).toBeLessThanOrEqual(groups.length * (versions + 5));
  await reader.client`rollback`;
});

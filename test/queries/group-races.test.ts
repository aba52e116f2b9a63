import { PgDialect } from 'drizzle-orm/pg-core';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ClaimedJob } from '../../src/core/queries/claim/claim-jobs.ts';
import { cancelJobsQuery } from '../../src/core/queries/operate/cancel-jobs.ts';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { rescheduleJobs } from '../../src/core/queries/settle/reschedule-jobs.ts';
import { admitGroups, MAX_NOTES } from '../../src/features/limits/queries/admit-groups.ts';
import {
  claimGroupedJobs,
  claimGroupedJobsQuery,
} from '../../src/features/limits/queries/claim-grouped-jobs.ts';
import { noteFreedGroups } from '../../src/features/limits/queries/note-groups.ts';
import type { Serial } from '../../src/features/limits/settings/limit-settings.ts';
import type { ClaimLimits } from '../../src/features/limits/sql/group-claim.ts';
import { addControlTables } from '../support/control-tables.ts';
import { type Connection, useTestDatabase } from '../support/test-database.ts';
import {
  addGrouped,
  addWorkers,
  claimGroups,
  clearGroups,
  groupClaimOf,
  groupedTables,
  groupRows,
} from './support/groups.ts';
import { idsOf } from './support/jobs.ts';
import { begin, commit, rollback, twoBackends, untilBlocked } from './support/locks.ts';

const database = useTestDatabase({ max: 4 });
const dialect = new PgDialect();
beforeAll(() => addControlTables(database));
beforeEach(() => clearGroups(database.client));

/** What keeps a claim from a group that has changed: its turn, and that its row stands elsewhere since. */
const GUARDS = { turn: / and g\.turn = s\.turn/, place: /g\.ctid = \w\.at and /g } as const;

/** A claim that waits, after it has seen the groups and before it locks them, for the lock 4711. */
async function claimInBetween(
  { client }: Connection,
  workerId: number,
  without: readonly (keyof typeof GUARDS)[],
): Promise<number[]> {
  const { sql, params } = dialect.sqlToQuery(claimGroupedJobsQuery(groupedTables(), groupClaimOf(workerId)));
  const waiting = sql.replace(
    'from (select * from seen order by place) as s left join lateral',
    `from (select s.* from seen as s cross join (
        select pg_advisory_xact_lock(4711) from (select count(*) from seen) as c) as l order by place
      ) as s left join lateral`,
  );
  expect(waiting).not.toBe(sql);
  const text = without.reduce((text, guard) => text.replace(GUARDS[guard], ''), waiting);
  for (const guard of ['turn', 'place'] as const)
    expect(text.search(GUARDS[guard]) !== -1).toBe(!without.includes(guard));
  // The driver's own types for what Drizzle has prepared as texts and numbers.
  const rows = await client.unsafe<{ id: string | null }[]>(text, params as never[]);
  return rows.flatMap(({ id }) => (id === null ? [] : [Number(id)]));
}

describe('a job that comes between the look of a claim and its lock', () => {
  test.each([
    ['is left to the next claim', []],
    // Not every version of Postgres looks again at where a row stands once it was locked.
    ['is left to the next claim, by the turn alone', ['place']],
    ['would be forgotten without the guards', ['turn', 'place']],
  ] as const)('%s', async (_, without) => {
    const [worker = 0] = await addWorkers(database.client);
    const [one, other] = await database.connect(2);
    if (one === undefined || other === undefined) throw new Error('no connection');
    await database.client`insert into queue_groups (queue, group_key, ready_at) values ('q', 'a', 'infinity')`;
    const [first] = await addGrouped(database.client, [{ group: 'a' }]);
    await admitGroups(database.db, groupedTables(), 'q');
    await other.client`select pg_advisory_lock(4711)`;
    const claim = claimInBetween(one, worker, without);
    for (let waits = false; !waits; ) {
      const [row] = await database.client<{ n: number }[]>`
        select count(*)::int as n from pg_locks
        where locktype = 'advisory' and not granted
          and database = (select oid from pg_database where datname = current_database())`;
      waits = row?.n === 1;
    }
    const [second] = await addGrouped(database.client, [{ group: 'a' }]);
    await admitGroups(database.db, groupedTables(), 'q');
    await other.client`select pg_advisory_unlock(4711)`;
    const claimed = await claim;
    const { jobs } = await claimGroups(database.db, worker);
    if (without.length < 2) {
      expect([claimed, idsOf(jobs)]).toEqual([[], [first, second]]);
    } else {
      // The naive form takes the first, and parks the group over the second for ever.
      expect([claimed, idsOf(jobs)]).toEqual([[first], []]);
      expect((await groupRows(database.client)).a?.ready).toBe('infinity');
    }
  });
});

describe('a new group that two claims find', () => {
  test.each(['commit', 'rollback'] as const)('is made by one of them: after its %s', async (end) => {
    const tables = groupedTables();
    const [worker = 0] = await addWorkers(database.client);
    const [one, other] = await twoBackends(database);
    const given = { limits: { concurrency: 1 } };
    const claim = ({ db }: Connection) => claimGroupedJobs(db, tables, groupClaimOf(worker, given));
    const [first] = await addGrouped(database.client, [{ group: 'a' }]);
    await begin(one);
    const its = await claim(one);
    expect(idsOf(its.jobs)).toEqual([first]);
    const [second] = await addGrouped(database.client, [{ group: 'a' }]);
    const waiting = claim(other);
    await untilBlocked(database, other);
    await one.client.unsafe(end);
    const { jobs, signs } = await waiting;
    expect([idsOf(jobs), signs.has('more')]).toEqual(end === 'commit' ? [[], true] : [[second], false]);
    // The limit of one holds, and neither job is forgotten.
    expect((await claimGroups(database.db, worker, given)).jobs).toEqual([]);
    const held = end === 'commit' ? its.jobs : jobs;
    const finish = {
      type: 'finish',
      state: 'completed',
      output: null,
      error: null,
      keepResult: false,
    } as const;
    const finishes = held.map(({ id, fence }) => ({ id, fence, transition: finish }));
    expect(await finishJobs(database.db, tables, { queue: 'q', workerId: worker }, finishes)).toEqual(
      new Set(idsOf(held)),
    );
    const next = await claimGroups(database.db, worker, given);
    expect(idsOf(next.jobs)).toEqual(end === 'commit' ? [second] : [first]);
  });
});

function byGroup<T extends { readonly group?: string }>(jobs: readonly T[]): T[][] {
  const groups = new Set(jobs.map(({ group }) => group));
  return [...groups].map((group) => jobs.filter((job) => job.group === group));
}

interface RaceOptions {
  readonly limits: Partial<ClaimLimits>;
  readonly serial?: Serial;
  readonly groups: number;
  readonly jobsEach: number;
}

/** Eight workers claim, end, retry and give back jobs, and die at random, until none is left. */
async function race({ limits, serial, groups, jobsEach }: RaceOptions) {
  const tables = groupedTables(serial);
  const names = Array.from({ length: groups }, (_, n) => `g${n}`);
  await addGrouped(
    database.client,
    names.flatMap((group) => Array.from({ length: jobsEach }, () => ({ group }))),
  );
  const connections = await database.connect(9);
  const watcher = connections.pop();
  if (watcher === undefined) throw new Error('no connection');
  const ended: { id: number; group: string }[] = [];
  let most = 0;
  let deaths = 0;
  let over = false;
  const left = async () => {
    const [row] = await watcher.client<{ n: number }[]>`select count(*)::int as n from queue_jobs`;
    return row?.n ?? 0;
  };
  const work = async ({ db, client }: Connection) => {
    let [workerId = 0] = await addWorkers(client);
    const holder = () => ({ queue: 'q', workerId });
    for (let failures = 0; !over; ) {
      // Claims use notes themselves; now and then they are folded in before.
      const folds = Math.random() < 0.2;
      while (folds && (await admitGroups(db, tables, 'q')) >= MAX_NOTES);
      const claim = groupClaimOf(workerId, { limits, limit: 1 + Math.floor(Math.random() * 6) });
      const { jobs } = await claimGroupedJobs(db, tables, claim);
      failures = jobs.length === 0 ? failures + 1 : 0;
      if (failures > 0) await new Promise((resolve) => setTimeout(resolve, 2));
      // A run is done in order; other jobs in any.
      for (const group of byGroup(jobs)) {
        if (Math.random() < 0.03) {
          deaths++;
          await client`delete from queue_workers where id = ${workerId}`;
          [workerId = 0] = await addWorkers(client);
          await noteFreedGroups(db, tables, 'q');
          break;
        }
        await settle(db, group, holder());
      }
    }
  };
  const settle = async (
    db: Connection['db'],
    jobs: readonly ClaimedJob[],
    holder: { queue: string; workerId: number },
  ) => {
    const back = jobs.findIndex(() => Math.random() < 0.1);
    const done = back === -1 ? jobs : jobs.slice(0, back);
    const finish = {
      type: 'finish',
      state: 'completed',
      output: null,
      error: null,
      keepResult: true,
    } as const;
    const finished = await finishJobs(
      db,
      tables,
      holder,
      done.map(({ id, fence }) => ({ id, fence, transition: finish })),
    );
    for (const { id, group = '' } of done) if (finished.has(id)) ended.push({ id, group });
    if (back === -1) return;
    await rescheduleJobs(
      db,
      tables,
      holder,
      jobs.slice(back).map(({ id, fence, attempt }, at) => ({
        id,
        fence,
        transition:
          at === 0
            ? { type: 'reschedule', delayMs: Math.random() * 20, attempt, error: null }
            : { type: 'reschedule', delayMs: null, attempt: attempt - 1, error: null },
      })),
    );
  };
  const watch = async () => {
    while (!over) {
      const [row] = await watcher.client<{ most: number | null }[]>`
        select max(n)::int as most from (
          select count(*) as n from queue_jobs as j join queue_workers as w on w.id = j.worker_id group by j.group_key
        ) as held`;
      most = Math.max(most, row?.most ?? 0);
    }
  };
  const running = [watch(), ...connections.map(work)];
  // Nobody looks for forgotten groups here, as workers do every half minute.
  while ((await left()) > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  over = true;
  await Promise.all(running);
  return { most, deaths, ended };
}

describe('eight workers, some of which die', { timeout: 120_000 }, () => {
  test('never hold more of a group than its limit, and reach it', async () => {
    const { most, deaths, ended } = await race({ limits: { concurrency: 3 }, groups: 5, jobsEach: 80 });
    expect([most, ended.length, new Set(ended.map(({ id }) => id)).size]).toEqual([3, 400, 400]);
    expect(deaths).toBeGreaterThan(0);
    const [row] =
      await database.client`select count(*)::int as n from queue_jobs where worker_id is not null`;
    expect(row).toEqual({ n: 0 });
  });

  test('end the jobs of a group in their order, where they run one after the other', async () => {
    const { deaths, ended } = await race({ limits: { run: 4 }, serial: 'end', groups: 5, jobsEach: 60 });
    expect(deaths).toBeGreaterThan(0);
    for (const jobs of byGroup(ended)) {
      const ids = jobs.map(({ id }) => id);
      expect(ids).toEqual(ids.toSorted((a, b) => a - b));
      expect(ids).toHaveLength(60);
    }
  });
});

test('a forced cancel that meets the failure of its job leaves a hold, which the next upkeep ends', async () => {
  const tables = groupedTables('end');
  const [worker = 0] = await addWorkers(database.client);
  const [first = 0, second] = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
  const claim = async () =>
    idsOf((await claimGroups(database.db, worker, { limits: { run: 1 } }, 'end')).jobs);
  expect(await claim()).toEqual([first]);
  const [one, other] = await twoBackends(database);
  await other.client`select pg_advisory_lock(4712)`;
  // It waits for that lock after it has seen the job, and before it locks its row.
  const slice = { queue: 'q', filter: {}, ids: [first] };
  const reason = { name: 'CancelledError', message: 'no longer wanted', at: '' };
  const query = cancelJobsQuery(tables, { ...slice, reason, force: { channel: undefined } });
  const { sql, params } = dialect.sqlToQuery(query);
  const waiting = sql.replace(
    'order by j.id',
    'and (select pg_advisory_xact_lock(4712)) is not null order by j.id',
  );
  expect(waiting).not.toBe(sql);
  const cancelling = one.client.unsafe(waiting, params as never[]);
  cancelling.catch(() => undefined);
  await untilBlocked(database, one);
  const [job] = await database.client<{ fence: string }[]>`select fence from queue_jobs where id = ${first}`;
  const error = { attempt: 1, name: 'Error', message: 'failed', at: '' };
  const transition = { type: 'reschedule', attempt: 1, delayMs: 3_600_000, error } as const;
  const held = { id: first, fence: Number(job?.fence) };
  await rescheduleJobs(database.db, tables, { queue: 'q', workerId: worker }, [{ ...held, transition }]);
  await other.client`select pg_advisory_unlock(4712)`;
  expect(await cancelling).toHaveLength(1);
  // Those behind it would wait for the next attempt of a job that is gone.
  expect(await claim()).toEqual([]);
  expect(await noteFreedGroups(database.db, tables, 'q')).toBe(1);
  expect(await claim()).toEqual([second]);
});

test('holds of jobs that wait for their next attempt, that were discarded, or whose handlers go on stay', async () => {
  const tables = groupedTables('success');
  const [worker = 0] = await addWorkers(database.client);
  const [retried = 0] = await addGrouped(database.client, [{ group: 'a' }]);
  await database.client`
    insert into queue_holds (queue, group_key, job_id, until, worker_id) values
      ('q', 'a', ${retried}, now() + interval '1 hour', null),
      ('q', 'b', 998, 'infinity', null), ('q', 'c', 999, 'infinity', ${worker})`;
  expect(await noteFreedGroups(database.db, tables, 'q')).toBe(0);
  expect(await database.client`select from queue_holds`).toHaveLength(3);
});

describe('two upkeeps that find the same holds of jobs that are gone', () => {
  const tables = groupedTables('end');
  const note = ({ db }: Connection) => noteFreedGroups(db, tables, 'q');
  const addHolds = async (first: number, last: number) => {
    await database.client`
      insert into queue_holds (queue, group_key, job_id, until, worker_id)
      select 'q', 'g' || n, n, now() + interval '1 hour', null from generate_series(${first}::int, ${last}::int) as n`;
  };
  const holds = async () => (await database.client`select from queue_holds`).length;
  const noted = async () => {
    const rows = await database.client<{ group: string }[]>`
      select unnest(group_keys) as group from queue_notes order by 1`;
    return rows.map(({ group }) => group);
  };

  test.each(['commit', 'rollback'] as const)('each takes what the other has not locked; %s', async (end) => {
    const [one, other] = await twoBackends(database);
    await other.client`set lock_timeout = 1000`;
    await addHolds(1, 2);
    await begin(one);
    expect(await note(one)).toBe(2);
    await addHolds(3, 3);
    expect(await note(other)).toBe(1);
    expect(await note(other)).toBe(0);
    await { commit, rollback }[end](one);
    expect(await note(other)).toBe(end === 'commit' ? 0 : 2);
    expect([await holds(), await noted()]).toEqual([0, ['g1', 'g2', 'g3']]);
  });

  test('at the same time, they remove and note each once', async () => {
    const [one, other] = await twoBackends(database);
    await other.client`set lock_timeout = 1000`;
    for (let last = 50; last <= 1_000; last += 50) {
      await addHolds(last - 49, last);
      const counts = await Promise.all([note(one), note(other)]);
      expect(counts[0] + counts[1]).toBe(50);
    }
    const groups = Array.from({ length: 1_000 }, (_, at) => `g${at + 1}`);
    expect([await holds(), await noted()]).toEqual([0, groups.toSorted()]);
  });
});

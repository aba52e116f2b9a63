import { PgDialect } from 'drizzle-orm/pg-core';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { finishJobs } from '../../src/core/queries/settle/finish-jobs.ts';
import { rescheduleJobs } from '../../src/core/queries/settle/reschedule-jobs.ts';
import { admitGroups } from '../../src/features/limits/queries/admit-groups.ts';
import { claimGroupedJobsQuery } from '../../src/features/limits/queries/claim-grouped-jobs.ts';
import type { Serial } from '../../src/features/limits/settings/limit-settings.ts';
import type { GroupTables } from '../../src/features/limits/sql/limit-tables.ts';
import { addControlTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';
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

const database = useTestDatabase();
const dialect = new PgDialect();
const LATER_MS = 400;
const FINISH = { type: 'finish', state: 'completed', output: null, error: null, keepResult: true } as const;
beforeAll(() => addControlTables(database));
beforeEach(() => clearGroups(database.client));

/**
 * A claim whose time is before what waits in the queue is due, and which sees what was committed later: that
 * another worker has folded in the notes of then. Postgres takes the time of a statement when it arrives, and its
 * snapshot when it begins to run; a busy machine does something else in between. Answers the jobs.
 */
async function claimOfBefore(workerId: number, tables: GroupTables, serial?: Serial): Promise<number[]> {
  const { sql, params } = dialect.sqlToQuery(
    claimGroupedJobsQuery(tables, groupClaimOf(workerId, { limits: { run: serial && 4 } })),
  );
  const [before] = await database.client<{ now: string }[]>`
    select (max(due_at) - interval '0.1 s')::text as now from queue_notes`;
  await database.client`
    select pg_sleep(date_part('epoch', max(due_at) - clock_timestamp())) from queue_notes`;
  await admitGroups(database.db, tables, 'q');
  const older = sql.replaceAll('statement_timestamp()', `'${before?.now}'::timestamptz`);
  const rows = await database.client.unsafe<{ id: string | null }[]>(older, params as never[]);
  return rows.flatMap(({ id }) => (id === null ? [] : [Number(id)]));
}

test('a claim that is older than what it sees does not set a scheduled job aside', async () => {
  const tables = groupedTables();
  const [worker = 0] = await addWorkers(database.client);
  const [first = 0] = await addGrouped(database.client, [{ group: 'a' }]);
  const { jobs } = await claimGroups(database.db, worker);
  await finishJobs(
    database.db,
    tables,
    { queue: 'q', workerId: worker },
    jobs.map(({ id, fence }) => ({ id, fence, transition: FINISH })),
  );
  const [second = 0] = await addGrouped(database.client, [{ group: 'a', dueInMs: LATER_MS }]);
  expect(await claimOfBefore(worker, tables)).toEqual([]);
  const { jobs: left } = await claimGroups(database.db, worker);
  expect([idsOf(jobs), idsOf(left)]).toEqual([[first], [second]]);
});

test('nor a group whose retry holds up those behind it', async () => {
  const tables = groupedTables('end');
  const [worker = 0] = await addWorkers(database.client);
  const ids = await addGrouped(database.client, [{ group: 'a' }, { group: 'a' }]);
  const limits = { run: 1 };
  const { jobs } = await claimGroups(database.db, worker, { limits }, 'end');
  await rescheduleJobs(
    database.db,
    tables,
    { queue: 'q', workerId: worker },
    jobs.map(({ id, fence, attempt }) => ({
      id,
      fence,
      transition: { type: 'reschedule', delayMs: LATER_MS, attempt, error: null },
    })),
  );
  expect(await claimOfBefore(worker, tables, 'end')).toEqual([]);
  const { jobs: left } = await claimGroups(database.db, worker, { limits: { run: 4 } }, 'end');
  expect([idsOf(jobs), idsOf(left)]).toEqual([ids.slice(0, 1), ids]);
});

test('a group with nothing due is looked at again when its next job is', async () => {
  const [worker = 0] = await addWorkers(database.client);
  const later = Array.from({ length: 120 }, (_, at) => ({
    group: 'a',
    dueInMs: 3_600_000 - at,
    priority: 2,
  }));
  const [first = 0] = await addGrouped(database.client, [{ group: 'a' }, ...later.slice(0, 1)]);
  expect(idsOf((await claimGroups(database.db, worker)).jobs)).toEqual([first]);
  expect((await groupRows(database.client)).a?.ready).toBe('later');
  // So many that the head of the group does not show the next one.
  await addGrouped(database.client, [...later, { group: 'a', dueInMs: 60_000, priority: 9 }]);
  const [second = 0] = await addGrouped(database.client, [{ group: 'a', priority: 9 }]);
  expect(idsOf((await claimGroups(database.db, worker)).jobs)).toEqual([second]);
  const [row] = await database.client<{ minutes: number }[]>`
    select ceil(extract(epoch from ready_at - statement_timestamp()) / 60)::int as minutes from queue_groups`;
  expect(row).toEqual({ minutes: 1 });
});

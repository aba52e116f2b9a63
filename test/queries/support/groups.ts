import type { Executor } from '../../../src/core/sql/executor.ts';
import {
  queueGroups,
  queueHolds,
  queueLimits,
  queueNotes,
  queueUsage,
} from '../../../src/features/control/index.ts';
import { admitGroups, MAX_NOTES } from '../../../src/features/limits/queries/admit-groups.ts';
import {
  claimGroupedJobs,
  type GroupClaimResult,
} from '../../../src/features/limits/queries/claim-grouped-jobs.ts';
import type { Serial } from '../../../src/features/limits/settings/limit-settings.ts';
import type { ClaimLimits, GroupClaim } from '../../../src/features/limits/sql/group-claim.ts';
import { withGrouping } from '../../../src/features/limits/sql/group-statements.ts';
import type { GroupTables } from '../../../src/features/limits/sql/limit-tables.ts';
import type { StartTimes } from '../../../src/features/limits/sql/start-time.ts';
import type { Connection } from '../../support/test-database.ts';
import { addJobs, clearTables, type GivenJob, tables } from './jobs.ts';

type Client = Connection['client'];

const limitTables = { queueLimits, queueUsage, queueGroups, queueHolds, queueNotes };

/** The tables of a queue `q` whose jobs are in groups. */
export function groupedTables(serial?: Serial): GroupTables {
  return withGrouping({ ...tables, ...limitTables }, limitTables, new Map([['q', { groups: { serial } }]]));
}

/** A job of a group; the rest is as in `addJobs`. */
export interface GivenGroupedJob extends GivenJob {
  readonly group: string;
  readonly cost?: number;
}

/** Adds jobs of groups, with the notes that an enqueue leaves. */
export async function addGrouped(client: Client, jobs: readonly GivenGroupedJob[]): Promise<number[]> {
  const ids = await addJobs(client, jobs);
  const groups = jobs.map(({ group, cost = 1 }, at) => ({ id: ids[at], group, cost }));
  await client`
    with given as (
      select * from jsonb_to_recordset(${JSON.stringify(groups)}::text::jsonb) as g(id int8, "group" text, cost int2)
    ),
    grouped as (
      update queue_jobs as j set group_key = g."group", weight = g.cost from given as g where j.id = g.id
      returning j.queue, j.group_key, j.run_at
    )
    insert into queue_notes (queue, due_at, group_keys)
    select distinct queue, run_at, array[group_key] from grouped`;
  return ids;
}

/** Workers that live; answers their ids. */
export async function addWorkers(client: Client, count = 1): Promise<number[]> {
  const rows = await client<{ id: string }[]>`
    insert into queue_workers (name, queues) select 'w', '[]' from generate_series(1, ${count}) returning id`;
  return rows.map(({ id }) => Number(id));
}

const NO_LIMITS: ClaimLimits = { run: undefined };

/** Jobs of groups with a rate begin with their claim. */
export const AT_ONCE: StartTimes = {
  neededMs: 0,
  stretch: 0,
  beginTime: () => ({ untilMs: Number.POSITIVE_INFINITY, onMissed: () => undefined }),
};

export function groupClaimOf(
  workerId: number,
  {
    limits,
    limit = 10,
    ...claim
  }: Partial<Omit<GroupClaim, 'limits'>> & { readonly limits?: Partial<ClaimLimits> } = {},
): GroupClaim {
  return {
    queue: 'q',
    kinds: ['k'],
    limit,
    groups: limit,
    rooms: new Map(),
    starts: limits?.rate === undefined ? undefined : AT_ONCE,
    withCosts: false,
    beginning: 0,
    workerId,
    without: [],
    ringFirst: false,
    seeks: false,
    passed: 0,
    ifTablesAre: undefined,
    ...claim,
    limits: { ...NO_LIMITS, ...limits },
  };
}

/** Folds in what was said, and claims. */
export async function claimGroups(
  db: Executor,
  workerId: number,
  claim: Parameters<typeof groupClaimOf>[1] = {},
  serial?: Serial,
): Promise<GroupClaimResult> {
  const grouped = groupedTables(serial);
  while ((await admitGroups(db, grouped, 'q')) >= MAX_NOTES);
  return await claimGroupedJobs(db, grouped, groupClaimOf(workerId, claim));
}

/** Also the tables of limits. */
export async function clearGroups(client: Client): Promise<void> {
  await clearTables(client);
  await client.unsafe(`
    delete from queue_groups; delete from queue_notes; delete from queue_holds; delete from queue_limits;
    delete from queue_usage`);
}

/** Each group of the queue, as its row stands. */
export async function groupRows(client: Client): Promise<Record<string, { ready: string; turn: number }>> {
  const rows = await client<{ group_key: string; ready: string; turn: string }[]>`
    select group_key, turn, case when ready_at in ('infinity', '-infinity') then ready_at::text
      when ready_at <= statement_timestamp() then 'now' else 'later' end as ready from queue_groups`;
  return Object.fromEntries(
    rows.map(({ group_key, ready, turn }) => [group_key, { ready, turn: Number(turn) }]),
  );
}

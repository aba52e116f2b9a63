import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type RawRow, type Runner } from '../../sql/executor.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import {
  type HeldJob,
  type Holder,
  type IdAndFenceTexts,
  stillHeld,
  textsOf,
  unnested,
} from '../../sql/fence.ts';
import { amongFree, freeRows } from '../../sql/free-rows.ts';
import { KeptStatements, type Place } from '../../sql/kept-statement.ts';
import { planAnew } from '../../sql/plan-anew.ts';
import { lockPatience, type RowLocks } from '../../sql/row-locks.ts';
import { isDistributed } from '../../sql/statement-context.ts';
import { isOf, type TableSize, tableSize } from '../../sql/table-size.ts';

/**
 * When a record is on the server's disk: `now`, as its statement ends, or `soon`, within about 0.6 seconds.
 * All connections see it at once in both cases, so only a crash of the server can undo it.
 */
export type OnDisk = 'now' | 'soon';

export interface BeginOptions {
  /** Anything but `wait` only outside of a user's transaction: see `lockPatience`. @default 'wait' */
  readonly locks?: RowLocks;
  /** `soon` only outside of a user's transaction, whose commit would be as late. @default 'now' */
  readonly onDisk?: OnDisk;
  /** Begins nothing unless the table is of this size: see `beginByKeptPlan`. @default undefined any */
  readonly ifTableIs?: TableSize | undefined;
}

/** Which jobs have begun, and which are held but locked by another transaction. The others are lost. */
export interface Begun {
  readonly begun: ReadonlySet<number>;
  readonly locked: ReadonlySet<number>;
}

/**
 * Records that held jobs of one queue, claimed without beginning, are about to begin: from here on a crash
 * spends the attempt. Returns the ids still held; the others must not run. Can be repeated when its result is
 * lost: it changes no fence and no attempt, and not the time of the first one, with which the times of
 * wake-ups are compared. No index contains `claimed_at`, so the update is HOT.
 *
 * **Under concurrency.** Fenced as `finishJobs` is: a job that was given back, taken over or ended in between
 * does not match. Where another transaction is just changing the job, this waits for it and looks again.
 */
export async function beginJobs(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  jobs: readonly HeldJob[],
  options?: BeginOptions,
): Promise<Set<number>> {
  const rows = await queryRows(db, tables, beginJobsQuery(tables, holder, jobs, options));
  return await begunBut(jobs, rows);
}

/**
 * The same by a prepared statement that Postgres plans once. Planning takes a third of the time of one for
 * 100 jobs, and short handlers need one for each 100. See `TableSize` for what its plan may be.
 *
 * **Under concurrency.** As {@link beginJobs}.
 *
 * @returns `undefined` where the table is of another size: then nothing has begun
 */
export async function beginByKeptPlan(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  jobs: readonly HeldJob[],
  options: BeginOptions & { readonly ifTableIs: TableSize },
): Promise<Set<number> | undefined> {
  const rows = await queryRows(db, tables, beginJobsQuery(tables, holder, jobs, options));
  return rows[0]?.[options.ifTableIs] === false ? undefined : await begunBut(jobs, rows);
}

async function begunBut(jobs: readonly HeldJob[], lost: readonly RawRow[]): Promise<Set<number>> {
  await faultPoint('begin: written');
  const begun = new Set(jobs.map(({ id }) => id));
  for (const { id } of lost) begun.delete(Number(id));
  return begun;
}

/**
 * Records that jobs begin, except those that another transaction has locked.
 *
 * **Under concurrency.** As {@link beginJobs}, except that it waits for no other transaction: a locked row is
 * left alone. A row whose lock was just released may still be named as locked.
 */
export async function beginFreeJobs(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  jobs: readonly HeldJob[],
): Promise<Begun> {
  const rows = await queryRows(db, tables, beginJobsQuery(tables, holder, jobs, { locks: 'skip' }));
  await faultPoint('begin: written');
  const idsOf = (locked: boolean) =>
    new Set(rows.filter((row) => row.locked === locked).map(({ id }) => Number(id)));
  return { begun: idsOf(false), locked: idsOf(true) };
}

/**
 * Returns those that have *not* begun, unless locked rows are skipped: hardly ever a row to read.
 *
 * @insteadOnCitus (plain; soon on disk; of a small table; of a grown table) beginJobsQuery, of free rows: it
 * would wait there for as long as a row is locked
 */
export function beginJobsQuery(
  tables: QueueTables,
  holder: Holder,
  jobs: readonly HeldJob[],
  { locks = 'wait', onDisk = 'now', ifTableIs }: BeginOptions = {},
): SQL {
  const { queue, workerId } = holder;
  return statements.of(tables, { locks, onDisk, ifTableIs }).with({ queue, workerId, ...textsOf(jobs) });
}

/** What the text of the statement depends on, beside the tables. */
interface Shape extends Required<Pick<BeginOptions, 'locks' | 'onDisk'>> {
  readonly ifTableIs: TableSize | undefined;
}

/** What each execution fills in. */
interface Values extends IdAndFenceTexts, Holder {}

const statements = new KeptStatements(statementOf);

function statementOf(tables: QueueTables, { locks, onDisk, ifTableIs }: Shape, place: Place<Values>): SQL {
  const { queueJobs } = tables;
  const queue = place('queue');
  const holder = { queue, workerId: place('workerId') };
  const skip = locks === 'skip';
  const free = skip
    ? sql`,
    ${freeRows(tables, stillHeld(holder))}`
    : sql``;
  const where = skip
    ? amongFree(queue)
    : sql`${stillHeld(holder)}${ifTableIs ? sql` and ${isOf(ifTableIs)}` : sql``}`;
  const size = ifTableIs ? sql`, ${isOf(ifTableIs)} as ${sql.raw(ifTableIs)}` : sql``;
  const answer = skip
    ? sql`
    select id, false as locked from begun
    union all
    select j.id, true from ${queueJobs} as j
    where ${stillHeld(holder)} and j.id not in (select id from begun)`
    : sql`
    select id${size} from i where id not in (select id from begun)`;
  const one = ifTableIs ? ONE_ROW : planAnew();
  const idsAndFences = unnested({ ids: place('ids'), fences: place('fences') });
  return sql`
    with ${
      ifTableIs
        ? sql`${tableSize(queueJobs, ifTableIs)},
    `
        : sql``
    }i as materialized (
      select id, fence from ${one}${lockPatience(tables, locks)}${commitPatience(tables, onDisk)}
        cross join rows from (${idsAndFences}) as r(id, fence)
    )${free},
    begun as (
    update ${queueJobs} as j set claimed_at = least(j.claimed_at, statement_timestamp())
    where ${where}
    returning j.id
    )${answer}`;
}

/** As `planAnew`, but for a plan that is kept. */
const ONE_ROW = sql.raw('(select 1) as one');

/** Citus takes no volatile function beside locked rows: there each commit waits for the disk. */
function commitPatience(tables: QueueTables, onDisk: OnDisk): SQL {
  return onDisk === 'now' || isDistributed(tables)
    ? sql``
    : sql` cross join set_config('synchronous_commit', 'off', true) as haste`;
}

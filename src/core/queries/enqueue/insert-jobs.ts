import { type SQL, sql } from 'drizzle-orm';
import type { NewJob } from '../../job/new-job.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { anyInGroup, groupColumns, haveGroupColumns, notedGroups } from '../../sql/grouped-jobs.ts';
import { type GivenColumn, haveBatchColumns, jobRows, jobValues } from '../../sql/job-rows.ts';
import { newJobId } from '../../sql/new-job-id.ts';
import { ownNames } from '../../sql/own-values.ts';
import { quotedName } from '../../sql/quoted-name.ts';
import { notified, type WakeUp, wakePayload } from '../../sql/wake-up.ts';

export interface InsertResult {
  /** In input order; `undefined` for a job whose unique key a live job has. */
  readonly ids: readonly (number | undefined)[];
  /** The queues whose workers are notified when the transaction commits. */
  readonly woken: ReadonlySet<string>;
}

/**
 * Inserts any number of jobs in one statement, which also notifies the workers of those queues of `wakeUp` in
 * which a new job is due.
 *
 * **Under concurrency.** The unique index decides. A key that another open transaction has just inserted
 * makes this statement wait: it inserts the job if that transaction rolls back, and leaves it out if it
 * commits. Keys go in sorted order, so two bulk statements with the same keys wait for each other and never
 * deadlock. Workers see nothing before the caller's transaction commits, and nothing stays if it rolls back.
 * Its notes about groups wait for no other transaction either.
 */
export async function insertJobs(
  db: Executor,
  tables: QueueTables,
  jobs: readonly NewJob[],
  wakeUp?: WakeUp,
): Promise<InsertResult> {
  const ids = new Array<number | undefined>(jobs.length).fill(undefined);
  const woken = new Set<string>();
  if (jobs.length === 0) return { ids, woken };
  const query = jobs.length > 1 && jobs.some(hasKey) ? insertKeyedJobsQuery : insertJobsQuery;
  const rows = await queryRows(db, tables, query(tables, jobs, wakeUp));
  // Ids are drawn in input order, but Citus returns the rows of one shard after those of another.
  if (query === insertJobsQuery && inSeveralQueues(jobs)) rows.sort((a, b) => Number(a.id) - Number(b.id));
  for (const [at, { id, ids: all, place, woke }] of rows.entries()) {
    const index = place === undefined ? at : Number(place) - 1;
    if (woke === true) woken.add(jobs[index]?.queue ?? '');
    if (all !== undefined) return { ids: JSON.parse(String(all ?? '[]')).map(newJobId), woken };
    ids[index] = newJobId(id);
  }
  return { ids, woken };
}

/**
 * One job, or any number without unique keys. Only a single job can be refused here, and `RETURNING` keeps
 * the order of the insert, so the position of an id identifies its job. (For jobs of several queues, Citus
 * keeps that order within each shard only; the ids are in input order there, too.)
 *
 * Several jobs of one queue to be notified are answered in one row: a call of `pg_notify` for each takes
 * longer.
 *
 * @insteadOnCitus (of members; that wait; that wait until their deadlines) an error: no worker starts there
 * whose queue has workflows
 */
export function insertJobsQuery(tables: QueueTables, jobs: readonly NewJob[], wakeUp?: WakeUp): SQL {
  const grouped = anyInGroup(jobs);
  const insert = plainInsert(tables, jobs);
  if (wakeUp === undefined && !grouped) return insert;
  const noted = grouped ? notedGroups(tables, 'inserted') : sql``;
  // The rows of the CTE are in the order of the insert.
  return sql`
    with inserted as (${insert}, queue, run_at${grouped ? sql`, group_key` : sql``})${noted}
    select ${wakeUp === undefined ? sql`i.id` : idAndWoke(jobs, wakeUp)} from inserted as i`;
}

function idAndWoke(jobs: readonly NewJob[], wakeUp: WakeUp): SQL {
  const [first, second] = jobs;
  if (!first || !second || inSeveralQueues(jobs)) return sql`i.id, ${woke(jobs, wakeUp)}`;
  const notify = notified(wakeUp.channel, wakePayload(first.queue, wakeUp));
  return sql`json_agg(i.id)::text as ids,
      case when bool_or(i.run_at <= statement_timestamp()) then ${notify} end as woke`;
}

/** The insert of {@link insertJobsQuery} alone, up to the first column that it returns: the `id`. */
export function plainInsert({ queueJobs }: QueueTables, jobs: readonly NewJob[]): SQL {
  // Only with a key: an insert that may meet a conflict takes longer for every row.
  const unlessDuplicate = jobs.some(hasKey) ? UNLESS_DUPLICATE : sql``;
  const own = givenColumns(queueJobs, jobs);
  const columns = sql`${sql.raw(COLUMNS)}${groupColumns(haveGroupColumns(jobs))}${batchColumns(jobs)}`;
  const [job] = jobs;
  const rows =
    jobs.length === 1 && job !== undefined
      ? sql`values (${jobValues(job, own)})`
      : sql`select ${columns}${ownValues(own)} from (${jobRows(jobs, own)}) as i order by place`;
  return sql`
    insert into ${queueJobs} (${columns}${ownNames(own)})
    ${rows}${unlessDuplicate}
    returning id`;
}

/**
 * Several jobs, some with unique keys. Ids are drawn first, in input order, and rows are inserted in the
 * order of their keys: the id identifies a job although some are left out, and jobs of one bulk still run in
 * input order.
 */
export function insertKeyedJobsQuery(tables: QueueTables, jobs: readonly NewJob[], wakeUp?: WakeUp): SQL {
  const { queueJobs } = tables;
  const own = givenColumns(queueJobs, jobs);
  const grouped = anyInGroup(jobs);
  const columns = sql`${sql.raw(COLUMNS)}${groupColumns(haveGroupColumns(jobs))}${batchColumns(jobs)}`;
  return sql`
    with numbered as materialized (
      select nextval(s.sequence) as id, o.*
      from (select pg_get_serial_sequence(${quotedName(queueJobs)}, 'id')::regclass as sequence) as s,
        (select * from (${jobRows(jobs, own)}) as i order by place) as o
    ),
    inserted as (
      insert into ${queueJobs} (id, ${columns}${ownNames(own)}) overriding system value
      select id, ${columns}${ownValues(own)} from numbered
      order by queue, kind, unique_key, place${UNLESS_DUPLICATE}
      returning id, queue, run_at${grouped ? sql`, group_key` : sql``}
    )${grouped ? notedGroups(tables, 'inserted') : sql``}
    select n.place, i.id, ${wakeUp === undefined ? sql`null as woke` : woke(jobs, wakeUp)}
    from inserted as i join numbered as n on n.id = i.id`;
}

function batchColumns(jobs: readonly NewJob[]): SQL {
  return haveBatchColumns(jobs) ? sql`, batch_id, blockers` : sql``;
}

/** What every enqueue sets. */
export const COLUMNS =
  'queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata';

/** The own columns that at least one job sets, with their places; the others get their defaults. */
export function givenColumns(queueJobs: QueueTables['queueJobs'], jobs: readonly NewJob[]): GivenColumn[] {
  return ownColumnsOf(queueJobs).flatMap((column, index) =>
    jobs.some(({ own }) => own?.[index] !== undefined) ? [{ ...column, index }] : [],
  );
}

export function ownValues(own: readonly GivenColumn[]): SQL {
  return sql.raw(own.map(({ index }) => `, own_${index}`).join(''));
}

const UNLESS_DUPLICATE = sql`
    on conflict (queue, kind, unique_key) where unique_key is not null do nothing`;

/** Notifies for a new row `i` that is due by the database's clock. */
export function woke(jobs: readonly NewJob[], wakeUp: WakeUp): SQL {
  const { channel, queues } = wakeUp;
  const mixed = inSeveralQueues(jobs);
  const [job] = jobs;
  const payload = mixed || job === undefined ? sql`i.queue` : wakePayload(job.queue, wakeUp);
  // A call per row is harmless: Postgres sends equal notifications of a transaction once.
  return sql`case when i.run_at <= statement_timestamp()${
    mixed ? sql` and ${JSON.stringify(queues)}::text::jsonb @> to_jsonb(i.queue)` : sql``
  } then ${notified(channel, payload)} end as woke`;
}

function inSeveralQueues(jobs: readonly NewJob[]): boolean {
  return jobs.some(({ queue }) => queue !== jobs[0]?.queue);
}

function hasKey({ uniqueKey }: NewJob): boolean {
  return uniqueKey !== null;
}

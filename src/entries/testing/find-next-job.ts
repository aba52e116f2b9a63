import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../core/schema/index.ts';
import type { Executor } from '../../index.ts';
import { arrayText, queryRows } from '../../internal.ts';
import { epochMs, groupsInAny, type HeldJob, idsAndFences, isFree, servedKind } from '../../testing-face.ts';
import { writtenHere } from './written-here.ts';

/** Which job is asked for. */
export interface NextJobQuestion {
  readonly kinds: readonly string[];
  /** `undefined`: any. */
  readonly queues: readonly string[] | undefined;
  /** The queues in which jobs of a group run one after the other. */
  readonly serial: readonly string[];
  readonly except: readonly number[];
  /** Whether only jobs that this transaction has written. */
  readonly written: boolean;
  readonly horizon: Horizon;
}

/** Up to when a job may become due. One that is due counts in any case. */
export interface Horizon {
  /** By the database's clock, in milliseconds since 1970. */
  readonly untilMs: number;
  /** How long from now, for what a handler has put off: what handlers take has made its delay begin late. */
  readonly putOffMs: number;
  /** What is above this id a handler has enqueued. */
  readonly lastId: number;
  /** These have run, and were to run again. */
  readonly again: ReadonlySet<number>;
  /** What a handler could debounce or replace at the beginning: under another fence it has done so. */
  readonly replaceable: readonly HeldJob[];
}

/** The job that is due next. */
export interface NextJob {
  readonly id: number;
  readonly queue: string;
  readonly group: string | undefined;
  /** 0 when it is due. */
  readonly dueInMs: number;
}

/**
 * The next unheld job in time: a due job by priority, or else the one that is due first. Jobs of a group
 * wait for the jobs that hold it up, and in order for a job of a kind that is not asked for. Rates and slots
 * do not count here. Jobs of a paused queue wait forever. With it comes the database's time, as Postgres
 * writes it, and in milliseconds since 1970.
 *
 * **Under concurrency.** A plain read: the claim decides.
 */
export async function findNextJob(
  db: Executor,
  tables: QueueTables,
  question: NextJobQuestion,
): Promise<{ readonly now: string; readonly nowMs: number; readonly next: NextJob | undefined }> {
  const [row] = await queryRows(db, tables, findNextJobQuery(tables, question));
  const time = { now: String(row?.now), nowMs: Number(row?.now_ms) };
  if (row === undefined || row.id === null) return { ...time, next: undefined };
  const next = {
    id: Number(row.id),
    queue: String(row.queue),
    group: row.group_key === null ? undefined : String(row.group_key),
    dueInMs: Number(row.due_in_ms),
  };
  return { ...time, next };
}

export function findNextJobQuery(tables: QueueTables, question: NextJobQuestion): SQL {
  const { queueJobs, queuePauses } = tables;
  const { kinds, queues, serial, except, written, horizon } = question;
  const groups = groupsInAny(tables);
  const readyAt =
    groups === undefined
      ? sql`j.run_at`
      : sql`greatest(j.run_at, (
          select max(h.until) from ${groups.tables.queueHolds} as h
          where h.queue = j.queue and h.group_key = j.group_key and h.until > statement_timestamp()
        ))`;
  const inOrder =
    serial.length === 0
      ? sql``
      : sql`
      and not (j.queue in (${values(serial)}) and exists (
        select from ${queueJobs} as e
        where e.queue = j.queue and e.group_key = j.group_key and e.run_at <= statement_timestamp()
          and (e.priority, e.run_at, e.id) < (j.priority, j.run_at, j.id) and e.worker_id is null
          and e.kind not in (${values(kinds)})${written ? sql` and ${writtenHere('e')}` : sql``}
      ))`;
  const { untilMs, putOffMs, lastId, again, replaceable } = horizon;
  const isPutOff = sql`(n.id > ${lastId}::int8${
    again.size === 0 ? sql`` : sql` or n.id = any(${arrayText([...again])}::text::int8[])`
  } or n.waiting_key is not null and (n.id, n.fence) not in (
      select id, fence from rows from (${idsAndFences(replaceable)}) as r(id, fence)
    ))`;
  return sql`
    select n.id, n.queue, n.group_key,
      greatest(date_part('epoch', n.ready_at - statement_timestamp()) * 1000, 0)::float8 as due_in_ms,
      statement_timestamp()::text as now, ${epochMs('statement_timestamp()')} as now_ms
    from (select 1) as one left join (select * from (
      select j.id, j.queue, j.group_key, j.priority, j.run_at, j.waiting_key, j.fence, ${readyAt} as ready_at
      from ${queueJobs} as j
      where ${isFree(tables)} and j.run_at < 'infinity' and ${servedKind(kinds)}${
        queues === undefined ? sql`` : sql` and j.queue in (${values(queues)})`
      }${except.length === 0 ? sql`` : sql` and j.id not in (${values(except)})`}
      and not exists (select from ${queuePauses} as p where p.queue = j.queue)${inOrder}${
        written ? sql` and ${writtenHere('j')}` : sql``
      }
    ) as n
    where n.ready_at < 'infinity' and n.ready_at <= greatest(statement_timestamp(), case when ${isPutOff}
      then statement_timestamp() + ${putOffMs}::float8 * interval '1 millisecond'
      else to_timestamp(${untilMs}::float8 / 1000) end)
    order by greatest(n.ready_at, statement_timestamp()), n.priority, n.run_at, n.id
    limit 1) as n on true`;
}

function values(given: readonly (string | number)[]): SQL {
  return sql.join(
    given.map((value) => (typeof value === 'number' ? sql`${value}::int8` : sql`${value}::text`)),
    sql`, `,
  );
}

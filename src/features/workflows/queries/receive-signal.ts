import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { type HeldJob, type Holder, isStillHeld } from '../../../core/sql/fence.ts';
import { lockPatience, type RowLocks } from '../../../core/sql/row-locks.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/** A step of a held job that wants a signal. */
export interface SignalToReceive extends HeldJob {
  readonly name: string;
  readonly signal: string;
  /** Which one of its name, from 0: how many the job has received. */
  readonly at: number;
  /** Whether the attempt waits for one of this name already: then this step waits behind it. */
  readonly isBehind?: boolean | undefined;
  /** How long it waits, from its first try with a limit; `undefined`: without one, also if it had one. */
  readonly timeoutMs: number | undefined;
  /** Of a step that waits for the first of several: the key of this one among them. */
  readonly first?: string | undefined;
  /** What an observer leaves with it, for the attempt after it. */
  readonly trace?: string | undefined;
}

/** What became of it: the signal is there, it did not come in time, or the job is to wait for it. */
export type Received =
  | { readonly type: 'received'; readonly value: unknown }
  | { readonly type: 'late' }
  | { readonly type: 'waiting'; readonly leftMs: number | null };

/**
 * Takes the next signal of a name for a step: it records the signal, or that it did not come in time, or that
 * the job waits. `undefined`: this worker no longer holds the job.
 *
 * **Under concurrency.** Sender and receiver write the row of the mailbox, and the one that comes second
 * reads what the first has written: the signal, or that it is waited for. It locks first the mailbox, then
 * the job, as the sender does. A transaction that has just sent something holds the mailbox until its commit.
 * Nothing is taken out of the mailbox, so a repetition receives the same signal, and a step that has ended
 * keeps its end. What a stale attempt leaves in the mailbox costs a claim, and no signal.
 *
 * @param locks `wait` in a transaction of the app's, `briefly` elsewhere: see `lockPatience`
 */
export async function receiveSignal(
  db: Runner,
  tables: TablesOfWorkflows,
  holder: Holder,
  wanted: SignalToReceive,
  locks: Exclude<RowLocks, 'skip'>,
): Promise<Received | undefined> {
  const query = receiveSignalQuery(tables, holder, wanted, locks);
  const [row] = await queryRows(db, tables, query, { entry: WORKFLOWS_ENTRY });
  if (row === undefined) return undefined;
  if (row.ended === true) {
    return row.has_output === true ? { type: 'received', value: row.output } : { type: 'late' };
  }
  return {
    type: 'waiting',
    leftMs: wanted.timeoutMs === undefined ? null : Math.max(0, Number(row.left_ms)),
  };
}

export function receiveSignalQuery(
  tables: TablesOfWorkflows,
  holder: Holder,
  { id, fence, name, signal, at, isBehind = false, timeoutMs, first, trace }: SignalToReceive,
  locks: Exclude<RowLocks, 'skip'>,
): SQL {
  const { queueJobs, queueMailboxes, queueSteps } = tables;
  const { queue } = holder;
  const held = isStillHeld(holder, { id, fence });
  const patience = lockPatience(tables, locks);
  const taken = isBehind
    ? sql`waiting = true`
    : // A repetition may be carried out late, when another step of the attempt waits for the next one.
      sql`waiting = jsonb_array_length(m.sent) <= greatest(${at}::int4, m.received),
        received = greatest(m.received, least(${at}::int4 + 1, jsonb_array_length(m.sent)))`;
  // One of several is recorded only once it is there, with its key.
  const what =
    first === undefined
      ? sql`'signal', ${signal}, value`
      : sql`'first', case when value is not null then ${signal}::text end,
        case when value is not null then jsonb_build_object('key', ${first}::text, 'value', value) end`;
  // Without a limit in the code it waits on, whatever an earlier version of the code has recorded.
  const isOver = timeoutMs === undefined ? sql`value is not null` : sql`value is not null or late`;
  const named =
    first === undefined
      ? sql``
      : sql`
        signal = case when s.ended_at is null then excluded.signal else s.signal end,`;
  return sql`
    with box as (
      insert into ${queueMailboxes} as m (job_id, queue, name, waiting, updated_at)
      select j.id, j.queue, ${signal}, true, statement_timestamp() from ${queueJobs} as j${patience}
      where ${held}
      on conflict (job_id, queue, name) do update
      set ${taken},
        updated_at = excluded.updated_at
      returning ${isBehind ? sql`null::jsonb` : sql`m.sent -> ${at}::int4 -> 'value'`} as value
    ),
    holder as materialized (
      select j.id, box.value, s.until <= statement_timestamp() as late
      from box cross join ${queueJobs} as j
      left join ${queueSteps} as s on s.job_id = j.id and s.queue = j.queue and s.name = ${name}
      where ${held}
      for no key update of j
    ),
    recorded as (
      insert into ${queueSteps} as s (job_id, queue, name, kind, signal, output, fence, until, trace,
        started_at, ended_at)
      select id, ${queue}, ${name}, ${what}, ${fence}::int8,
        statement_timestamp() + ${timeoutMs ?? null}::float8 * interval '1 millisecond',
        ${trace ?? null}::text, statement_timestamp(),
        case when ${isOver} then statement_timestamp() end
      from holder
      on conflict (job_id, queue, name) do update
      set output = case when s.ended_at is null then excluded.output else s.output end,
        ended_at = coalesce(s.ended_at, excluded.ended_at), fence = excluded.fence,${named}
        until = coalesce(s.until, excluded.until), trace = coalesce(excluded.trace, s.trace)
      returning s.output, s.output is not null as has_output, s.ended_at is not null as ended, s.until
    )
    select output, has_output, ended,
      extract(epoch from until - statement_timestamp())::float8 * 1000 as left_ms
    from recorded`;
}

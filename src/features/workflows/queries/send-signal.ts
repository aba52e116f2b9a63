import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { isTarget, type LiveTarget } from '../sql/live-target.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

export interface SignalToSend {
  readonly to: LiveTarget;
  readonly name: string;
  /** The sender's own, in no other signal. */
  readonly signalId: string;
  /** JSON text. */
  readonly value: string;
  readonly key: string | undefined;
}

/** A signal that was put into a mailbox, or not. */
export interface SentTo {
  readonly id: number;
  readonly queue: string;
  /** `duplicate`: one with its key is there. `full`: there is no room. */
  readonly became: 'sent' | 'duplicate' | 'full';
  /** Whether the job waits for it, and is not due yet for another one that it has not received. */
  readonly waiting: boolean;
}

/** How many signals of one name a job may leave unreceived, and get in all. */
const MAX_WAITING_SIGNALS = 1_000;
const MAX_SIGNALS = 10_000;

/**
 * Puts a signal into the mailbox of a live job, and says whether the job waits for it: it is then to be
 * unparked in the same transaction. `undefined`: there is no such job.
 *
 * **Under concurrency.** See `receiveSignal`. Two senders of one name to one job wait for each other, and the
 * order of their commits is the order of the signals. The job's own row is not locked. A job that ends
 * meanwhile leaves the signal behind, which is deleted later.
 *
 * Of those that were not received, the first one wakes the job. Before a step waits again, it takes what is
 * there. Where none does, as after a timeout, the job would be claimed for nothing by each further one.
 */
export async function sendSignal(
  db: Executor,
  tables: TablesOfWorkflows,
  signal: SignalToSend,
): Promise<SentTo | undefined> {
  const rows = await queryRows(db, tables, sendSignalQuery(tables, signal), { entry: WORKFLOWS_ENTRY });
  const [row] = rows;
  if (row === undefined) return undefined;
  const became = row.is_sent === true ? 'sent' : row.is_duplicate === true ? 'duplicate' : 'full';
  return {
    id: Number(row.job_id),
    queue: String(row.queue),
    became,
    waiting: row.waiting === true,
  };
}

export function sendSignalQuery(
  { queueJobs, queueMailboxes }: TablesOfWorkflows,
  { to, name, signalId, value, key }: SignalToSend,
): SQL {
  // The value is JSON already.
  const entry = `[{"id":${JSON.stringify(signalId)},"value":${value}${
    key === undefined ? '' : `,"key":${JSON.stringify(key)}`
  }}]`;
  const hasKey = key === undefined ? sql`false` : sql`m.sent @> ${JSON.stringify([{ key }])}::text::jsonb`;
  return sql`
    insert into ${queueMailboxes} as m (job_id, queue, name, sent, updated_at)
    select j.id, j.queue, ${name}, ${entry}::text::jsonb, statement_timestamp()
    from ${queueJobs} as j
    where ${isTarget(to)}
    on conflict (job_id, queue, name) do update
    set sent = case
        when ${hasKey} or jsonb_array_length(m.sent) - m.received >= ${MAX_WAITING_SIGNALS}::int4
          or jsonb_array_length(m.sent) >= ${MAX_SIGNALS}::int4 then m.sent
        else m.sent || excluded.sent end,
      updated_at = excluded.updated_at
    returning m.job_id, m.queue,
      m.waiting and jsonb_array_length(m.sent) - m.received = 1 as waiting,
      m.sent -> -1 ->> 'id' = ${signalId}::text as is_sent,
      ${hasKey} as is_duplicate`;
}

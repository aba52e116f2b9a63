import { type SQL, sql } from 'drizzle-orm';
import { dateOf, epochMs } from '../../../core/sql/epoch-ms.ts';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/** The signals of one name that were sent to a job, without their values. */
export interface MailboxRecord {
  /** The name of the signals. */
  readonly signal: string;
  /** How many were sent. */
  readonly sent: number;
  /** How many of them a step has received. */
  readonly received: number;
  /** Whether the job waits for the next one, or is about to. */
  readonly waiting: boolean;
  /** When the mailbox was last written, by a sender or by the job. */
  readonly updatedAt: Date;
}

/**
 * The mailboxes of a job, by the name of their signals.
 *
 * **Under concurrency.** A plain read, which waits for no lock.
 */
export async function findMailboxes(
  db: Runner,
  tables: TablesOfWorkflows,
  id: number,
): Promise<MailboxRecord[]> {
  const rows = await queryRows(db, tables, findMailboxesQuery(tables, id), { entry: WORKFLOWS_ENTRY });
  return rows.map((row) => ({
    signal: String(row.name),
    sent: Number(row.sent),
    received: Number(row.received),
    waiting: row.waiting === true,
    updatedAt: dateOf(row.updated_at),
  }));
}

export function findMailboxesQuery({ queueMailboxes }: TablesOfWorkflows, id: number): SQL {
  return sql`
    select m.name, jsonb_array_length(m.sent) as sent, m.received, m.waiting,
      ${epochMs('m.updated_at')} as updated_at
    from ${queueMailboxes} as m
    where m.job_id = ${id}::int8
    order by m.name`;
}

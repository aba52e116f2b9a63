import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/** Of a job: the mailbox of this name, or all out of which its steps have received something. */
export interface MailboxesToLock {
  readonly queue: string;
  readonly id: number;
  readonly name?: string | undefined;
}

/**
 * Locks mailboxes of a job. `false`: another transaction has locked one of them, as one does that has sent a
 * signal and has not ended.
 *
 * **Under concurrency.** Never waits. Senders and receivers lock first the mailbox, then the job. A
 * transaction that changes both calls this before it locks the job. One that has locked the job already
 * calls it before it receives something. A mailbox that another transaction is just making is not seen.
 */
export async function lockMailboxes(
  tx: Executor,
  tables: TablesOfWorkflows,
  lock: MailboxesToLock,
): Promise<boolean> {
  const [row] = await queryRows(tx, tables, lockMailboxesQuery(tables, lock), { entry: WORKFLOWS_ENTRY });
  return row?.locked === row?.found;
}

export function lockMailboxesQuery(
  { queueMailboxes }: TablesOfWorkflows,
  { queue, id, name }: MailboxesToLock,
): SQL {
  const which = name === undefined ? sql`m.received > 0` : sql`m.name = ${name}`;
  const wanted = sql`m.job_id = ${id}::int8 and m.queue = ${queue} and ${which}`;
  return sql`
    with locked as materialized (
      select m.name from ${queueMailboxes} as m where ${wanted}
      for no key update skip locked
    )
    select (select count(*) from locked)::int4 as locked, count(*)::int4 as found
    from ${queueMailboxes} as m where ${wanted}`;
}

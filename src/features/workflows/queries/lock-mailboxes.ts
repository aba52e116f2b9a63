import { type SQL, sql } from 'drizzle-orm';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/**
 * Locks the mailboxes of a job out of which its steps have received something. `false`: another transaction
 * has locked one of them, as one does that has sent a signal and has not ended.
 *
 * **Under concurrency.** Never waits. Senders and receivers lock first the mailbox, then the job. A
 * transaction that changes both calls this before it locks the job.
 */
export async function lockMailboxes(
  tx: Executor,
  tables: TablesOfWorkflows,
  job: { readonly queue: string; readonly id: number },
): Promise<boolean> {
  const [row] = await queryRows(tx, tables, lockMailboxesQuery(tables, job), { entry: WORKFLOWS_ENTRY });
  return row?.locked === row?.found;
}

export function lockMailboxesQuery(
  { queueMailboxes }: TablesOfWorkflows,
  { queue, id }: { readonly queue: string; readonly id: number },
): SQL {
  const received = sql`m.job_id = ${id}::int8 and m.queue = ${queue} and m.received > 0`;
  return sql`
    with locked as materialized (
      select m.name from ${queueMailboxes} as m where ${received}
      for no key update skip locked
    )
    select (select count(*) from locked)::int4 as locked, count(*)::int4 as found
    from ${queueMailboxes} as m where ${received}`;
}

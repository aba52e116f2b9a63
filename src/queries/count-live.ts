import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { dateOf, epochMs } from '../sql/epoch-ms.ts';
import { type Executor, queryRows } from '../sql/executor.ts';
import { inScope, type JobScope } from '../sql/job-scope.ts';

/** How many live jobs of one kind in one queue there are. */
export interface LiveCount {
  readonly queue: string;
  readonly kind: string;
  readonly due: number;
  readonly running: number;
  readonly scheduled: number;
  readonly waiting: number;
  /** Since when the oldest due job has been due; `null` when none is. */
  readonly oldestDueAt: Date | null;
}

/**
 * Counts the live jobs in a scope, by queue and kind. It reads every live job: whoever calls it bounds its
 * time.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function countLive(db: Executor, tables: QueueTables, scope: JobScope): Promise<LiveCount[]> {
  const rows = await queryRows(db, tables, countLiveQuery(tables, scope));
  return rows.map((row) => ({
    queue: String(row.queue),
    kind: String(row.kind),
    due: Number(row.due),
    running: Number(row.running),
    scheduled: Number(row.scheduled),
    waiting: Number(row.waiting),
    oldestDueAt: row.oldest_due_at === null ? null : dateOf(row.oldest_due_at),
  }));
}

export function countLiveQuery({ queueJobs }: QueueTables, scope: JobScope): SQL {
  const free = `j.worker_id is null`;
  const due = `${free} and j.run_at <= statement_timestamp()`;
  const count = (condition: string) => sql.raw(`(count(*) filter (where ${condition}))::float8`);
  return sql`
    select j.queue, j.kind, ${count(due)} as due, ${count('j.worker_id is not null')} as running,
      ${count(`${free} and j.run_at > statement_timestamp() and j.run_at < 'infinity'`)} as scheduled,
      ${count(`${free} and j.run_at = 'infinity'`)} as waiting,
      ${epochMs(`(min(j.run_at) filter (where ${due}))`)} as oldest_due_at
    from ${queueJobs} as j where ${sql.join([sql`true`, ...inScope(scope, 'j')], sql` and `)}
    group by j.queue, j.kind order by j.queue, j.kind`;
}

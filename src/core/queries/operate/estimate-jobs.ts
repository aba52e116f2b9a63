import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';

export interface EstimatedQueue {
  readonly queue: string;
  readonly live: number;
  readonly due: number;
  readonly running: number;
}

/** Which live jobs `j` are meant. */
export type Estimated = 'live' | 'due' | 'running';

const CONDITIONS: Readonly<Record<Estimated, SQL>> = {
  live: sql``,
  due: sql` and j.worker_id is null and j.run_at <= statement_timestamp()`,
  running: sql` and j.worker_id is not null`,
};

/** Asks the planner how many jobs a queue has. Reads no row: as good as the last `ANALYZE`. */
export async function estimateJobs(db: Runner, tables: QueueTables, queue: string): Promise<EstimatedQueue> {
  const rowsOf = async (which: Estimated) => {
    const query = sql`explain (format json) ${estimatedJobsQuery(tables, queue, which)}`;
    return plannedRows(await queryRows(db, tables, query));
  };
  return { queue, live: await rowsOf('live'), due: await rowsOf('due'), running: await rowsOf('running') };
}

/** The statement that is planned, and never run. */
export function estimatedJobsQuery({ queueJobs }: QueueTables, queue: string, which: Estimated): SQL {
  return sql`select from ${queueJobs} as j where j.queue = ${queue}${CONDITIONS[which]}`;
}

/** The plan is JSON, which some drivers parse and others leave as text. */
function plannedRows(rows: readonly Record<string, unknown>[]): number {
  const [plan] = Object.values(rows[0] ?? {});
  const parsed: unknown = typeof plan === 'string' ? JSON.parse(plan) : plan;
  const [root] = Array.isArray(parsed) ? parsed : [];
  return Number(root?.Plan?.['Plan Rows'] ?? 0);
}

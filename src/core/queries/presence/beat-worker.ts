import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { kindsText, type NewWorker } from './register-worker.ts';

export interface LivingWorker extends NewWorker {
  readonly id: number;
  /** The backend process id of the connection with its session lock. @default undefined it holds none */
  readonly session?: number | undefined;
  /** Which server that is: see `thisNode`. */
  readonly node?: string | undefined;
}

/**
 * Records that a worker is alive. Returns `true` when its row was gone, so other workers may have claimed its
 * jobs. The row is then inserted again under the same id, and still holds every job that no other worker has
 * claimed.
 *
 * **Under concurrency.** A peer that removes the row at this moment finds it fresh, or the row is inserted
 * again after the removal. A job that a peer claims in between has a higher fence and is lost to this worker.
 */
export async function beatWorker(
  runner: Runner,
  tables: QueueTables,
  worker: LivingWorker,
): Promise<boolean> {
  const [row] = await queryRows(runner, tables, beatWorkerQuery(tables, worker));
  return row?.anew === true;
}

export function beatWorkerQuery(
  { queueWorkers }: QueueTables,
  { id, name, queues, kinds, session = undefined, node = undefined }: LivingWorker,
): SQL {
  return sql`
    insert into ${queueWorkers} as w (id, name, queues, kinds, session, node, seen_at) overriding system value
    values (${id}, ${name}, ${JSON.stringify(queues)}::text::jsonb, ${kindsText(kinds)}::text::jsonb,
      ${session ?? null}::int4, ${node ?? null}::text, statement_timestamp())
    on conflict (id) do update set seen_at = excluded.seen_at, session = excluded.session,
      node = excluded.node
    returning (w.xmax = 0) as anew`;
}

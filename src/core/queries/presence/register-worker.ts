import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';

export interface NewWorker {
  readonly name: string;
  readonly queues: readonly string[];
  /** The kinds that it has handlers for. @default undefined it does not say */
  readonly kinds?: readonly string[] | undefined;
}

/** Adds a worker; returns its id. Ids come from a sequence, so no two workers ever share one. */
export async function registerWorker(db: Runner, tables: QueueTables, worker: NewWorker): Promise<number> {
  const [row] = await queryRows(db, tables, registerWorkerQuery(tables, worker));
  return Number(row?.id);
}

export function registerWorkerQuery({ queueWorkers }: QueueTables, { name, queues, kinds }: NewWorker): SQL {
  return sql`
    insert into ${queueWorkers} (name, queues, kinds)
    values (${name}, ${JSON.stringify(queues)}::text::jsonb, ${kindsText(kinds)}::text::jsonb)
    returning id`;
}

/** As JSON; null for a worker that does not say. */
export function kindsText(kinds: readonly string[] | undefined): string | null {
  return kinds === undefined ? null : JSON.stringify(kinds);
}

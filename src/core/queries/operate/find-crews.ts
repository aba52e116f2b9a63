import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';

/** Workers that do the same. */
export interface Crew {
  readonly queues: readonly string[];
  /** `undefined` for workers of an older version, which do not say. */
  readonly kinds: readonly string[] | undefined;
  readonly workers: number;
}

/** The registered workers by what they do: usually one crew per program. A plain read. */
export async function findCrews(db: Runner, tables: QueueTables): Promise<Crew[]> {
  const rows = await queryRows(db, tables, findCrewsQuery(tables));
  return rows.map(({ queues, kinds, workers }) => ({
    // Only workers write the two, as arrays of text.
    queues: queues as string[],
    kinds: kinds === null ? undefined : (kinds as string[]),
    workers: Number(workers),
  }));
}

export function findCrewsQuery({ queueWorkers }: QueueTables): SQL {
  return sql`
    select w.queues, w.kinds, count(*)::float8 as workers
    from ${queueWorkers} as w group by w.queues, w.kinds limit 1000`;
}

import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { seenText } from '../../sql/why-gone.ts';

/** A worker's row, as far as it says whether the worker lives. */
export interface KnownWorker {
  readonly id: number;
  readonly session: number | null;
  readonly node: string | null;
  /** Seconds since 1970, with all their digits. */
  readonly started: string;
  readonly seen: string;
}

export async function findWorkers(runner: Runner, tables: QueueTables): Promise<KnownWorker[]> {
  const rows = await queryRows(runner, tables, findWorkersQuery(tables));
  return rows.map(({ id, session, node, started, seen }) => ({
    id: Number(id),
    session: session === null ? null : Number(session),
    node: node === null ? null : String(node),
    started: String(started),
    seen: String(seen),
  }));
}

export function findWorkersQuery({ queueWorkers }: QueueTables): SQL {
  return sql`
    select w.id, w.session, w.node, extract(epoch from w.started_at)::text as started, ${seenText} as seen
    from ${queueWorkers} as w`;
}

/** The rows again, for a `FROM` of a statement that reads no table. A float has room for the microseconds. */
export function knownWorkers(workers: readonly KnownWorker[]): SQL {
  return sql`(
        select k.id, k.session, k.node, null::jsonb as queues, null::jsonb as kinds,
          to_timestamp(k.started::float8) as started_at, to_timestamp(k.seen::float8) as seen_at
        from jsonb_to_recordset(${JSON.stringify(workers)}::text::jsonb)
          as k(id int8, session int4, node text, started text, seen text)
      )`;
}

import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { quotedName } from '../../sql/quoted-name.ts';

/**
 * Whether this node of a Citus cluster gives new jobs ids that JavaScript cannot hold: there a sequence
 * begins at 2^48 × the node's group. Asked on Citus alone.
 */
export async function hasLargeIds(db: Runner, tables: QueueTables): Promise<boolean> {
  const [row] = await queryRows(db, tables, hasLargeIdsQuery(tables));
  return row?.large === true;
}

export function hasLargeIdsQuery({ queueJobs }: QueueTables): SQL {
  return sql`
    select s.seqmin > ${Number.MAX_SAFE_INTEGER}::int8 as large from pg_sequence as s
    where s.seqrelid = pg_get_serial_sequence(${quotedName(queueJobs)}, 'id')::regclass`;
}

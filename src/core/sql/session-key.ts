import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { quotedName } from './quoted-name.ts';

/**
 * The key of a worker's session lock, an `int8`: a hash of the workers' table and the worker's id. It uses
 * the table's oid and not its name, since the search path may find several tables of one name, whose workers
 * have the same ids.
 *
 * @param id SQL of the worker's id
 */
export function sessionKey({ queueWorkers }: QueueTables, id: SQL): SQL {
  return sql`hashtextextended(${quotedName(queueWorkers)}::text::regclass::oid::text, ${id})`;
}

import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { isIdentified } from './server-facts.ts';

/**
 * Which server runs the statement, as a text. Session locks are known only where they are held, and one
 * address may lead to several servers: to the nodes of a Citus cluster, or through a router. A cluster's
 * identifier is made by initdb; a restart and a failover keep it. Where the role may not read it, the time of
 * the server's start stands for it: locks from before a restart then say nothing.
 */
export function thisNode(tables: QueueTables): SQL {
  return isIdentified(tables)
    ? sql`(select c.system_identifier::text from pg_control_system() as c)`
    : sql`extract(epoch from pg_postmaster_start_time())::text`;
}

import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { sessionKey } from './session-key.ts';
import { thisNode } from './this-node.ts';

/**
 * Why a worker looks gone.
 *
 * - `lost`: its session has ended.
 * - `silent`: it has no session, or one that has ended or is on another node, and was not seen for long.
 * - `frozen`: it holds one, and was not seen for very long.
 */
export type WhyGone = 'lost' | 'silent' | 'frozen';

export interface GoneLimits {
  /** How long a worker without a session may go unseen. */
  readonly silentMs: number;
  /** How long one that holds its session may go unseen. */
  readonly frozenMs: number;
  /** How long after the server's start a free lock says nothing: the start has ended all sessions. */
  readonly startRespiteMs: number;
}

/** When a worker has last shown itself, as text with all its digits. */
export const seenText: SQL = sql`extract(epoch from w.seen_at)::text`;

/**
 * For a `FROM`, after the workers as `w`: `free`, whether the worker's session lock can be taken. Null for a
 * worker without a session: its lock is not touched, so that it can take it. Also null for a worker whose
 * session is on another node, since this node does not see that node's locks.
 *
 * Shared, so that any number of peers may test it at once, and released when the transaction ends. A
 * subselect with a volatile function is never merged into the query around it, so the lock is tested once.
 *
 * A backend can always take a lock that it holds itself, so a worker on the same backend is looked up in
 * `pg_locks`. Only such a worker is, because the lookup walks through all locks of the server. The process id
 * alone does not tell: a pooler, or chance, may have given a dead worker's backend to another session.
 *
 * @param self the id of the testing worker, which knows that it is alive
 */
export function testedLock(tables: QueueTables, self?: number): SQL {
  const key = sessionKey(tables, sql`w.id`);
  const isSelf = self === undefined ? sql`` : sql`w.id = ${self}::int8 or `;
  return sql`(
        select case
          when w.node <> ${thisNode(tables)} then null
          when w.session = pg_backend_pid() then not (${isSelf}${key} = any(array(
            select a.classid::int8 << 32 | a.objid::int8 from pg_locks as a
            where a.pid = pg_backend_pid() and a.locktype = 'advisory' and a.mode = 'ExclusiveLock')))
          when w.session is not null then pg_try_advisory_xact_lock_shared(${key})
        end as free
      )`;
}

/**
 * Why the worker `w` looks gone, or null, given its tested lock as `l`. No worker counts as silent for longer
 * than the server has been up: during an outage no worker could report. All times are the database's.
 */
export function whyGone({ silentMs, frozenMs, startRespiteMs }: GoneLimits): SQL {
  return sql`case
        when greatest(w.seen_at, pg_postmaster_start_time()) < statement_timestamp()
          - case when not l.free then ${frozenMs}::float8 else ${silentMs}::float8 end
            * interval '1 millisecond'
        then case when not l.free then 'frozen' else 'silent' end
        when l.free and pg_postmaster_start_time() < statement_timestamp()
          - ${startRespiteMs}::float8 * interval '1 millisecond'
        then 'lost'
      end`;
}

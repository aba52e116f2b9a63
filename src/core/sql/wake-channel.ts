import { getTableConfig } from 'drizzle-orm/pg-core';
import type { QueueTables } from '../schema/create-queue-tables.ts';

/**
 * The channel on which enqueues wake the workers of these tables; a notification's payload is the name of the
 * queue with a due job, perhaps after {@link OTHERS_NOTIFY}. Features may send others, which name no queue.
 * Derived from the schema and the name of the jobs table, so every process finds the same one.
 *
 * Only `a`–`z`, digits and `_`, because some drivers put it into `LISTEN` unquoted, and at most 63 bytes, the
 * limit of Postgres. Tables in two Postgres schemas get two channels. Tables of one name without an explicit
 * schema share a channel even if the search path finds them in different places; a worker then sometimes
 * wakes in vain.
 */
export function wakeChannel(tables: Pick<QueueTables, 'queueJobs'>): string {
  return tablesChannel(tables, 'wake');
}

/** A channel of these tables, made as {@link wakeChannel} says. */
export function tablesChannel({ queueJobs }: Pick<QueueTables, 'queueJobs'>, what: 'wake' | 'end'): string {
  const { schema, name } = getTableConfig(queueJobs);
  if (schema === undefined && /^[a-z0-9_]{1,50}$/.test(name)) return `queue_${what}_${name}`;
  const readable = [schema, name]
    .join('_')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_');
  // The hash distinguishes what the readable part cannot: `a_b` . `c` and `a` . `b_c`, for example.
  return `queue_${what}s_${readable.slice(0, 34)}_${hash64(JSON.stringify([schema ?? null, name]))}`;
}

/**
 * In a payload before the name of the queue: other enqueues notify as well for now. Without it, such as from
 * a bulk of several queues or from the app's own SQL, jobs may follow without a notification.
 */
export const OTHERS_NOTIFY = '\u0001';

/** The payload of a cancel or a pause; no queue has this name. Each worker looks whether it is meant. */
export const REQUESTED = '';

/** The payload that says that workers were declared gone. A queue of this name would look in vain as well. */
export const WORKERS_GONE = '\u0003';

/** FNV-1a of the UTF-8 bytes as 16 hex digits, not cryptographic: not every runtime has `node:crypto`. */
function hash64(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash.toString(16).padStart(16, '0');
}

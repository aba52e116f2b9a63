import { getTableConfig } from 'drizzle-orm/pg-core';
import type { QueueTables } from '../schema/create-queue-tables.ts';

/**
 * The channel on which enqueues wake the workers of these tables; the payload of a notification is the name of the queue that
 * has a due job. It follows from the schema and the name of the jobs table, so every process finds the same one.
 *
 * Only `a`–`z`, digits and `_`, since some drivers put it into `LISTEN` as it stands, and at most 63 bytes, since
 * Postgres refuses more. Tables in two Postgres schemas get two channels. Tables of one name without a schema of their own
 * share one even if the search path finds them in different places; workers then wake once in vain.
 */
export function wakeChannel({ queueJobs }: Pick<QueueTables, 'queueJobs'>): string {
  const { schema, name } = getTableConfig(queueJobs);
  if (schema === undefined && /^[a-z0-9_]{1,50}$/.test(name)) return `queue_wake_${name}`;
  const readable = [schema, name]
    .join('_')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_');
  // The hash tells apart what the readable part cannot: `a_b` . `c` and `a` . `b_c`, say.
  return `queue_wakes_${readable.slice(0, 34)}_${hash64(JSON.stringify([schema ?? null, name]))}`;
}

/**
 * The payload that names no queue (none has an empty name): something was asked of the workers, a cancel or a pause, and each
 * looks whether it is meant.
 */
export const REQUESTED = '';

/** FNV-1a over the text's UTF-8 bytes, as 16 hex digits. Not cryptographic; `node:crypto` is not there in every runtime. */
function hash64(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return hash.toString(16).padStart(16, '0');
}

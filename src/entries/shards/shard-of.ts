import { shown } from '../../internal.ts';
import { murmurHash } from './murmur-hash.ts';
import { namesOfShards } from './shard.ts';

const utf8 = new TextEncoder();

/** What decides about the shard: such as the id of a tenant. `7`, `7n` and `'7'` are the same key. */
export type ShardKey = string | number | bigint;

/**
 * The shard of a key, with its name: always the same one, in each process, runtime and version of the
 * library, whatever the order of the shards. Keys are spread evenly. A new shard takes an equal share of keys
 * from each of the others, and no other key changes its shard; the keys of a removed shard are spread over
 * those that are left. Jobs do not move: they stay in the database that they were enqueued in.
 *
 * It is rendezvous hashing. A shard's score is MurmurHash3 (x86, 32 bits) of the key's text in UTF-8, seeded
 * with the same hash of the shard's name, which has the seed 0. The highest score wins; of equal ones, the
 * first name in the order of `<`. So renaming a shard moves its keys.
 *
 * It looks at nothing but the names, and costs a microsecond or two for each.
 *
 * ```ts
 * const { db, queue } = shardOf(shards, tenantId);
 * await queue.enqueue(db, sendReceipt, { orderId });
 * ```
 *
 * @throws TypeError when there is no shard, or the key is not a text, a safe whole number or a bigint
 */
export function shardOf<TName extends string, TShard extends object>(
  shards: Readonly<Record<TName, TShard>>,
  key: ShardKey,
): TShard & { readonly name: TName } {
  const bytes = keyBytes(key);
  const [first, ...others] = namesOfShards('shardOf', shards);
  // `namesOfShards` has refused an object without names.
  let name = first as TName;
  let score = scoreOf(name, bytes);
  for (const other of others) {
    const otherScore = scoreOf(other, bytes);
    if (otherScore < score || (otherScore === score && name < other)) continue;
    [name, score] = [other, otherScore];
  }
  return { ...shards[name], name };
}

function scoreOf(name: string, key: Uint8Array): number {
  return murmurHash(key, murmurHash(utf8.encode(name), 0));
}

/** A key that was forgotten must not become the text 'undefined', which has a shard, too. */
function keyBytes(key: ShardKey): Uint8Array {
  const isKey = typeof key === 'string' ? key !== '' : typeof key === 'bigint' || Number.isSafeInteger(key);
  if (isKey) return utf8.encode(String(key));
  throw new TypeError(
    `shardOf: key must be a text that is not empty, a safe whole number or a bigint, got ${shown(key)}`,
  );
}

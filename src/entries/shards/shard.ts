import type { OwnColumns } from '../../core/schema/index.ts';
import type { Database, Queue } from '../../index.ts';
import { checkObject, shown } from '../../internal.ts';

/** One of several databases that have the same tables and the same jobs. */
export interface Shard<TDb extends Database = Database, TOwn extends OwnColumns = OwnColumns> {
  /** The app's own Drizzle database. */
  readonly db: TDb;
  /**
   * A queue of this shard alone, from `createQueue`: each queue limits how often it notifies the workers of
   * one server.
   */
  readonly queue: Queue<TOwn>;
}

/** What the dashboard takes as the name of a queue, so that it can be given the same shards. */
const NAME = /^[\w-]{1,64}$/;

/**
 * The names of the shards. `checkShard` checks the value of each.
 *
 * @throws TypeError when there is none, or one has a name that cannot be part of a URL
 */
export function namesOfShards<TName extends string>(
  caller: string,
  shards: Readonly<Record<TName, unknown>>,
): readonly TName[] {
  // The keys of an object are what its type says, unless it has been cast.
  const names = Object.keys(checkObject(`${caller}: shards`, shards)) as TName[];
  if (names.length === 0) throw new TypeError(`${caller}: shards must have at least one shard`);
  for (const name of names) {
    if (NAME.test(name)) continue;
    throw new TypeError(
      `${caller}: the name of a shard must be 1 to 64 letters, digits, _ and -, got ${shown(name)}`,
    );
  }
  return names;
}

/** @throws TypeError naming the shard that has no database or no queue, or has the queue of another */
export function checkShards(caller: string, shards: Readonly<Record<string, Shard>>): void {
  const owners = new Map<unknown, string>();
  for (const name of namesOfShards(caller, shards)) {
    const { db, queue } = checkObject(`${caller}: the shard '${name}'`, Reflect.get(shards, name) as Shard);
    if (typeof db?.execute !== 'function') {
      throw new TypeError(
        `${caller}: db of the shard '${name}' must be a Drizzle database, got ${shown(db)}`,
      );
    }
    if (typeof queue?.tables !== 'object') {
      throw new TypeError(
        `${caller}: queue of the shard '${name}' must be what createQueue() returns, got ${shown(queue)}`,
      );
    }
    const owner = owners.get(queue);
    if (owner !== undefined) {
      throw new TypeError(
        `${caller}: the shards '${owner}' and '${name}' have the same queue. Call createQueue() for each: ` +
          'each queue limits how often it notifies the workers of one server',
      );
    }
    owners.set(queue, name);
  }
}

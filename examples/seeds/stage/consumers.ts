import { connect, type Db } from './database.ts';

/**
 * Runs several consumers at the same time, each on a connection of its own as if it were a process of its own, and returns what
 * each of them returns.
 */
export async function runConsumers<T>(
  url: string,
  count: number,
  consume: (db: Db, number: number) => Promise<T>,
): Promise<T[]> {
  const connections = Array.from({ length: count }, () => connect(url));
  try {
    // Connected before the first of them begins: otherwise it might be done when the last one comes.
    await Promise.all(connections.map(({ db }) => db.execute('select 1')));
    return await Promise.all(connections.map(({ db }, index) => consume(db, index + 1)));
  } finally {
    await Promise.all(connections.map(({ close }) => close()));
  }
}

/** Takes one item after the other until there is none, and returns them. */
export async function takeAll<T>(takeOne: () => Promise<T | undefined>): Promise<T[]> {
  const taken: T[] = [];
  for (;;) {
    const item = await takeOne();
    if (item === undefined) return taken;
    taken.push(item);
  }
}

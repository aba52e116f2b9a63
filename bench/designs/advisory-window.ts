import { eq, sql } from 'drizzle-orm';
import { createTable, items, take } from '../../examples/seeds/advisory-locks.ts';
import { type Design, oneByOne } from './design.ts';

/** Tiikkaja's last form (2010): the first of a window of candidates whose number can be locked; work; delete. */
export const advisoryWindow: Design = {
  name: 'advisory window',
  create: (db) => db.execute(createTable),
  add: (db, count) => db.execute(sql`insert into items select from generate_series(1, ${count}::int)`),
  clear: (db) => db.execute(sql`truncate items`),
  start: oneByOne(async (db, work) => {
    const [item] = await take(db);
    // The queue is never empty while it is measured: the item was somebody else's.
    if (item === undefined) return 'retry';
    await work();
    await db.delete(items).where(eq(items.id, item.id));
    return 'done';
  }),
};

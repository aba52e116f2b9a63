import { eq, sql } from 'drizzle-orm';
import { items } from '../../examples/seeds/advisory-locks.ts';
import { advisoryWindow } from './advisory-window.ts';
import { type Design, oneByOne } from './design.ts';

/** Tiikkaja's first form (2010): everybody tries the first row, looks again when it is theirs to change, and starts over if it is gone. */
export const minId: Design = {
  ...advisoryWindow,
  name: 'min(id)',
  start: oneByOne(async (db, work) => {
    const first = sql`(select min(id) from items where available)`;
    const [item] = await db
      .update(items)
      .set({ available: false })
      .where(sql`${items.id} = ${first} and ${items.available}`)
      .returning({ id: items.id });
    if (item === undefined) return 'retry';
    await work();
    await db.delete(items).where(eq(items.id, item.id));
    return 'done';
  }),
};

import { sql } from 'drizzle-orm';
import { createTable, finish, hold as holdNext } from '../../examples/seeds/hold.ts';
import { type Design, oneByOne } from './design.ts';

/** Sorber (2012), with the lock of 2016: mark, work outside any transaction, mark as finished. */
export const hold: Design = {
  name: 'hold',
  create: (db) => db.execute(createTable),
  add: (db, count) => db.execute(sql`insert into foo select from generate_series(1, ${count}::int)`),
  clear: (db) => db.execute(sql`truncate foo`),
  start: oneByOne(async (db, work) => {
    const [held] = await holdNext(db);
    if (held === undefined) return 'empty';
    await work();
    return (await finish(db, held)).length === 1 ? 'done' : 'retry';
  }),
};

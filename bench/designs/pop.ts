import { sql } from 'drizzle-orm';
import { createTable, dequeue, enqueue } from '../../examples/seeds/pop.ts';
import { type Design, oneByOne } from './design.ts';

/** Farías: `DELETE … RETURNING` of the first row that nobody has locked. A consumer that dies takes its job along. */
export const pop: Design = {
  name: 'pop',
  create: (db) => db.execute(createTable),
  add: enqueue,
  clear: (db) => db.execute(sql`truncate queue`),
  start: oneByOne(async (db, work) => {
    const [popped] = await dequeue(db);
    if (popped === undefined) return 'empty';
    await work();
    return 'done';
  }),
};

import { blockAndFinish } from '../../examples/seeds/hold.ts';
import { type Design, oneByOne } from './design.ts';
import { hold } from './hold.ts';

/** Where Sorber's article starts (2012): `SELECT … LIMIT 1 FOR UPDATE`, and everybody waits for the first row. */
export const forUpdate: Design = {
  ...hold,
  name: 'FOR UPDATE',
  start: oneByOne(async (db, work) => ((await blockAndFinish(db, work)) === undefined ? 'empty' : 'done')),
};

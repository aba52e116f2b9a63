/**
 * The primitive under the queue, for any Drizzle table: take the first rows that are not locked, without
 * waiting for the locked ones. This entry loads nothing but drizzle-orm.
 */
export { type HoldRowsOptions, holdRows } from './hold-rows.ts';
export type { ExclusiveStrength, LockStrength, LockWait, WhichRows } from './lock-options.ts';
export { type LockRowsOptions, lockRows } from './lock-rows.ts';
export { type PopRowsOptions, popRows } from './pop-rows.ts';
export type { QueryBuilders } from './query-builders.ts';
export type { Row, RowFields } from './row-fields.ts';
export type { PreparedRowsQuery, RowsQuery } from './rows-query.ts';

import { type SQL, sql } from 'drizzle-orm';
import { QueueError } from '../../errors.ts';
import type { RawRow } from './executor.ts';

/**
 * Columns that show whether the driver hands out what the database answers. Drivers can be told to rename
 * columns and keys, and to read types in another way; Drizzle's own queries hide the first.
 */
export const answerSample: SQL = sql.raw(
  `'{"a_key": 0}'::jsonb as a_sample, null::text as a_null, true as a_boolean`,
);

/** @param row with {@link answerSample} @throws QueueError where the driver hands out something else */
export function checkSample(row: RawRow): void {
  const { a_sample: sample, a_null: absent, a_boolean: boolean } = row;
  if (sample === undefined) throw changedAnswer('renames columns');
  if (typeof sample !== 'object') throw changedAnswer('does not parse jsonb');
  if (Reflect.get(Object(sample), 'a_key') === undefined) throw changedAnswer('renames the keys of jsonb');
  if (absent !== null) throw changedAnswer('changes null');
  if (boolean !== true) throw changedAnswer('does not parse booleans');
}

/** @param change what the driver does */
function changedAnswer(change: string): QueueError {
  return new QueueError(
    `The driver ${change}, so drizzle-queue cannot read its jobs. Give it a client of its own, ` +
      'without `transform`, and without a parser of yours for jsonb or booleans',
  );
}

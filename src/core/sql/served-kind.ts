import { type SQL, sql } from 'drizzle-orm';
import type { Value } from './kept-statement.ts';

/**
 * Whether the job `j` is of one of the kinds. `is true` keeps `in` a hashed subplan, which costs the same for
 * any number of kinds; `= any(array(…))` compares them one by one, for every row that a claim passes over.
 */
export function servedKind(kinds: readonly string[]): SQL {
  return servedKindOf(JSON.stringify(kinds));
}

/** @param kinds as JSON */
export function servedKindOf(kinds: Value<string>): SQL {
  return sql`(j.kind in (select jsonb_array_elements_text(${kinds}::text::jsonb))) is true`;
}

/** Whether the job `j` is not one of these: a hashed subplan, as {@link servedKind}. @param ids as text */
export function isNotAmong(ids: Value<string>): SQL {
  return sql`(j.id in (select unnest(${ids}::text::int8[]))) is not true`;
}

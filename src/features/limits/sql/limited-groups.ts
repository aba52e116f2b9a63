import { type SQL, sql } from 'drizzle-orm';
import { EVERY_GROUP } from '../../../core/job/group.ts';
import type { LimitTables } from './limit-tables.ts';
import { insertNotes } from './note-groups.ts';

/**
 * One more CTE, which notes for the claims to look at a group whose limit has changed, or at all of a queue:
 * with another limit what waits may start. Nothing for the limit of a queue or a kind.
 *
 * It notes groups wherever they stand: a claim that still uses the old limit may be about to park one. One
 * that is named is noted although it may be unknown: others may use it first while the transaction is open.
 */
export function notedForLimit(
  tables: Pick<LimitTables, 'queueGroups' | 'queueNotes'>,
  { queue, group }: { readonly queue: string; readonly group: string },
): SQL {
  if (group === '') return sql``;
  const groups =
    group === EVERY_GROUP
      ? sql`g.group_key from ${tables.queueGroups} as g
        where g.queue = ${queue}`
      : sql`${group}::text as group_key`;
  return sql`,
    noted as (${insertNotes(
      tables,
      sql`
        select ${queue}::text as queue, statement_timestamp() as due_at, ${groups}`,
    )}
    )`;
}

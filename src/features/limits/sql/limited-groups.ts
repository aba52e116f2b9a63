import { type SQL, sql } from 'drizzle-orm';
import { EVERY_GROUP } from '../../../core/job/group.ts';
import type { LimitTables } from './limit-tables.ts';
import { insertNotes } from './note-groups.ts';

/**
 * One more CTE, which notes for the claims to look at a group whose limit has changed, or at all of a queue:
 * with another limit what waits may start. Nothing for the limit of a queue or a kind.
 *
 * It notes groups wherever they stand: a claim that still uses the old limit may be about to park one.
 */
export function notedForLimit(
  tables: Pick<LimitTables, 'queueGroups' | 'queueNotes'>,
  { queue, group }: { readonly queue: string; readonly group: string },
): SQL {
  if (group === '') return sql``;
  const { queueGroups } = tables;
  const which = group === EVERY_GROUP ? sql`` : sql` and g.group_key = ${group}`;
  return sql`,
    noted as (${insertNotes(
      tables,
      sql`
        select ${queue}::text as queue, statement_timestamp() as due_at, g.group_key from ${queueGroups} as g
        where g.queue = ${queue}${which}`,
    )}
    )`;
}

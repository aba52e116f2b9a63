import { type SQL, sql } from 'drizzle-orm';
import { CONTROL_ENTRY } from '../sql/control-entry.ts';
import { dueInGroup } from '../sql/due-in-group.ts';
import { queryRows, type Runner } from '../sql/executor.ts';
import type { GroupTables } from '../sql/grouping.ts';
import { planAnew } from '../sql/plan-anew.ts';

/** The most notes that one statement folds in. */
export const MAX_NOTES = 4_000;

/**
 * Folds the notes of one queue that are due into its groups, so that claims look at those groups; returns how
 * many notes it has used up. A group that is in the ring stays where it is. One that has had its turn already
 * comes back at its place; any other waits in the lane of those that were idle.
 *
 * **Under concurrency.** Notes and groups that another statement has locked are skipped, and such notes
 * stay for the next time. A note is deleted in the statement that heeds it. Every change of a group moves
 * its turn, so a claim whose snapshot is older leaves the group alone. A group in which nothing is due
 * needs nothing: a job that is due later, or committed later, has a note of its own. Whether something is
 * due in a group that is new, the claim finds out.
 */
export async function admitGroups(db: Runner, tables: GroupTables, queue: string): Promise<number> {
  const rows = await queryRows(db, tables, admitGroupsQuery(tables, queue), { entry: CONTROL_ENTRY });
  return Number(rows[0]?.used);
}

/** Notes that were used up are deleted by their range of the index: by their ids alone, all are read. */
export function admitGroupsQuery(tables: GroupTables, queue: string): SQL {
  const { queueGroups, queueNotes } = tables;
  return sql`
    with note as materialized (
      select n.due_at, n.id, n.group_key from ${planAnew()} cross join ${queueNotes} as n
      where n.queue = ${queue} and n.due_at <= statement_timestamp()
      order by n.due_at, n.id limit (select ${MAX_NOTES}::int8)
      for update of n skip locked
    ),
    asked as materialized (
      select group_key, min(due_at) as due_at from note group by group_key
    ),
    known as materialized (
      select g.group_key from ${queueGroups} as g
      where g.queue = ${queue} and g.group_key = any(array(select group_key from asked))
    ),
    waiting as materialized (
      select a.group_key, a.due_at from asked as a
      where (a.group_key in (select group_key from known)) is true and exists (${dueInGroup(tables, {
        queue,
        group: sql`a.group_key`,
        most: sql`1`,
      })}
      )
    ),
    ring as materialized (
      select coalesce((
        select g.turn from ${queueGroups} as g
        where g.queue = ${queue} and g.turn >= 0 and g.ready_at = '-infinity' order by g.turn limit 1
      ), 0) as turn
    ),
    locked as materialized (
      select w.group_key, w.due_at from waiting as w cross join lateral (
        select from ${queueGroups} as g where g.queue = ${queue} and g.group_key = w.group_key
        for no key update skip locked
      ) as g
    ),
    made as (
      insert into ${queueGroups} (queue, group_key, ready_at)
      select ${queue}::text, a.group_key, a.due_at from asked as a
      where a.group_key not in (select group_key from known)
      order by a.group_key
      on conflict (queue, group_key) do nothing
      returning group_key
    ),
    folded as (
      update ${queueGroups} as g
      set turn = 1 + g.turn,
        ready_at = case
          when g.ready_at = '-infinity' or g.turn > r.turn then '-infinity'
          else least(g.ready_at, l.due_at)
        end
      from locked as l cross join ring as r where g.queue = ${queue} and g.group_key = l.group_key
    ),
    first as materialized (
      select due_at, id from note order by due_at, id limit 1
    ),
    last as materialized (
      select due_at, id from note order by due_at desc, id desc limit 1
    ),
    used as (
      delete from ${queueNotes} as n
      where n.queue = ${queue}
        and (n.due_at, n.id) >= ((select due_at from first), (select id from first))
        and (n.due_at, n.id) <= ((select due_at from last), (select id from last))
        and (n.id in (
          select x.id from note as x
          where x.group_key in (select group_key from locked) or x.group_key in (select group_key from made)
            or x.group_key in (select group_key from known)
              and x.group_key not in (select group_key from waiting)
        )) is true
      returning 1
    )
    select count(*)::float8 as used from used`;
}

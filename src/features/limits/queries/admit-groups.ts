import { type SQL, sql } from 'drizzle-orm';
import type { Runner } from '../../../core/sql/executor.ts';
import { KeptStatements, type Place } from '../../../core/sql/kept-statement.ts';
import { planAnew } from '../../../core/sql/plan-anew.ts';
import { isDueInGroup } from '../sql/due-in-group.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';
import { nextNotes } from '../sql/note-groups.ts';

/** The most groups whose notes one statement folds in. */
export const MAX_NOTES = 4_000;

/**
 * Folds the notes of one queue that are due into its groups, so that claims look at those groups: claims use
 * notes themselves, but a few at a time, and in the order of their times. A group that is in the ring stays
 * where it is. One that has had its turn already comes back at its place; any other waits in the lane of
 * those that were idle. Returns of how many groups it has used notes: at least {@link MAX_NOTES} when more
 * may be left.
 *
 * **Under concurrency.** Notes and groups that another statement has locked are skipped, as are groups that
 * it has changed since this one's snapshot. Such notes stay for the next time. A note is deleted in the
 * statement that heeds it; if it is about more groups, those that were skipped are noted again in the same
 * statement. Every change of a group moves its turn, so a claim whose snapshot is older leaves the group
 * alone. A group in which nothing is due needs nothing: a job that is due later, or committed later, has a
 * note of its own. A new group is inserted; one that another statement inserts at the same time is waited
 * for, and skipped.
 */
export async function admitGroups(db: Runner, tables: GroupTables, queue: string): Promise<number> {
  const [row] = await queryLimitRows(db, tables, admitGroupsQuery(tables, queue));
  return Number(row?.used);
}

const statements = new KeptStatements(admitStatement);

/**
 * Notes that were used up are deleted by their range of the index: by their ids alone, all are read. Each
 * group is looked up by its key once, and then by where its row stands: under an old snapshot, a look by the
 * key passes all versions that the row has had.
 *
 * @insteadOnCitus an error
 */
export function admitGroupsQuery(tables: GroupTables, queue: string): SQL {
  return statements.of(tables, {}).with({ queue, most: MAX_NOTES });
}

function admitStatement(
  tables: GroupTables,
  _: object,
  place: Place<{ readonly queue: string; readonly most: number }>,
): SQL {
  const { queueGroups, queueNotes } = tables;
  const queue = place('queue');
  const most = sql`${place('most')}::int8`;
  return sql`
    with free as materialized (${nextNotes(tables, { queue, most })}
    ),
    note as materialized (
      select n.at, n.id, n.due_at, unnest(n.group_keys) as group_key from (
        select n.*, sum(cardinality(n.group_keys)) over (order by n.due_at, n.id)
            - cardinality(n.group_keys) as before
        from ${planAnew()} cross join free as n
      ) as n
      where n.before < ${most}
    ),
    known as materialized (
      select a.group_key, a.due_at, g.at, g.turn from (
        select group_key, min(due_at) as due_at from note group by group_key
      ) as a
      left join lateral (
        select g.ctid as at, g.turn from ${queueGroups} as g
        where g.queue = ${queue} and g.group_key = a.group_key
        offset 0
      ) as g on true
    ),
    waiting as materialized (
      select k.* from known as k where ${isDueInGroup(tables, { queue, group: sql`k.group_key` })}
    ),
    ring as materialized (
      select coalesce((
        select g.turn from ${queueGroups} as g
        where g.queue = ${queue} and g.turn >= 0 and g.ready_at = '-infinity'
        order by g.turn limit 1
      ), 0) as turn
    ),
    locked as materialized (
      select w.group_key, w.due_at, w.at from waiting as w cross join lateral (
        select from ${queueGroups} as g
        where g.ctid = w.at and g.queue = ${queue} and g.group_key = w.group_key and g.turn = w.turn
        for no key update skip locked
      ) as g
    ),
    made as (
      insert into ${queueGroups} (queue, group_key, ready_at)
      select ${queue}::text, w.group_key, w.due_at from waiting as w
      where w.at is null order by w.group_key
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
      from locked as l cross join ring as r
      where g.ctid = l.at and (g.queue = ${queue} and g.group_key = l.group_key) is true
    ),
    heeded as materialized (
      select n.*, n.group_key in (select group_key from locked)
          or n.group_key in (select group_key from made)
          or n.group_key not in (select group_key from waiting) as used
      from note as n
    ),
    removed as (
      delete from ${queueNotes} as n using (select distinct h.at, h.id from heeded as h where h.used) as h
      where n.ctid = h.at and n.queue = ${queue} and n.id = h.id
    ),
    kept as (
      insert into ${queueNotes} (queue, due_at, group_keys)
      select ${queue}::text, n.due_at, array_agg(n.group_key) from heeded as n
      where not n.used and n.id in (select id from heeded where used)
      group by n.due_at, n.id
    )
    select (select count(*) from heeded where used)::float8 as used`;
}

import { type SQL, sql } from 'drizzle-orm';
import type { RawRow, Runner } from '../../../core/sql/executor.ts';
import { KeptStatements, type Place } from '../../../core/sql/kept-statement.ts';
import { planAnew } from '../../../core/sql/plan-anew.ts';
import { isSmall, tableSizes } from '../../../core/sql/table-size.ts';
import { dueInGroup } from '../sql/due-in-group.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';
import { MAX_KEYS, nextNotes } from '../sql/note-groups.ts';

/** The most groups whose notes one statement folds in. */
export const MAX_NOTES = 4_000;

/** What an admission has done. */
export interface Admission {
  /** How many groups it has heeded the notes of; at least {@link MAX_NOTES} when more may be left. */
  readonly used: number;
  /** Whether groups wait that no claim has met. */
  readonly newGroups: boolean;
  /** Whether due notes are left, which others had locked, or which are about groups that they had. */
  readonly left: boolean;
}

/**
 * Folds the notes of one queue that are due into its groups, so that claims look at those groups. A group
 * that is in the ring stays where it is. One that has had its turn already comes back at its place; any other
 * waits in the lane of those that were idle. Groups without a row stay noted, as `admitted`: a claim makes
 * them.
 *
 * **Under concurrency.** Notes and groups that another statement has locked are skipped, as are groups that
 * it has changed since this one's snapshot. Such notes stay for the next time. A note is deleted in the
 * statement that heeds it; if it is about more groups, those that were skipped are noted again in the same
 * statement. Every change of a group moves its turn, so a claim whose snapshot is older leaves the group
 * alone. A group in which nothing is due needs nothing: a job that is due later, or committed later, has a
 * note of its own. Whether something is due in a group that is new, the claim finds out; so it does when
 * another claim has made it meanwhile.
 */
export async function admitGroups(db: Runner, tables: GroupTables, queue: string): Promise<Admission> {
  return admissionOf(await queryLimitRows(db, tables, admitGroupsQuery(tables, queue)));
}

/** The most groups that {@link admitFewGroups} folds in: its plan may read the tables once for each. */
export const FEW_NOTES = 8;

/**
 * The same for a few groups, by a prepared statement that Postgres plans once, which takes a millisecond. Its
 * plan may be for empty tables, and read all of them for each group.
 *
 * @returns `undefined` where a table is too large for that: then it has folded in nothing
 */
export async function admitFewGroups(
  db: Runner,
  tables: GroupTables,
  queue: string,
): Promise<Admission | undefined> {
  const rows = await queryLimitRows(db, tables, admitGroupsQuery(tables, queue, true));
  return rows[0]?.small === true ? admissionOf(rows) : undefined;
}

function admissionOf([row]: readonly RawRow[]): Admission {
  return { used: Number(row?.used), newGroups: row?.new_groups === true, left: row?.are_left === true };
}

const statements = new KeptStatements(admitStatement);

/**
 * Notes that were used up are deleted by their range of the index: by their ids alone, all are read. Each
 * group is looked up by its key once, and then by where its row stands: under an old snapshot, a look by the
 * key passes all versions that the row has had.
 *
 * @insteadOnCitus an error
 */
export function admitGroupsQuery(tables: GroupTables, queue: string, onlyIfSmall = false): SQL {
  return statements.of(tables, { onlyIfSmall }).with({ queue, most: onlyIfSmall ? FEW_NOTES : MAX_NOTES });
}

function admitStatement(
  tables: GroupTables,
  { onlyIfSmall }: { readonly onlyIfSmall: boolean },
  place: Place<{ readonly queue: string; readonly most: number }>,
): SQL {
  const { queueJobs, queueGroups, queueNotes } = tables;
  const queue = place('queue');
  const most = sql`${place('most')}::int8`;
  const inSmall = onlyIfSmall ? sql` and ${isSmall}` : sql``;
  return sql`
    with ${
      onlyIfSmall ? tableSizes([queueJobs, queueGroups, queueNotes]) : sql``
    }free as materialized (${nextNotes(tables, { queue, admitted: false, most, and: inSmall })}
    ),
    note as materialized (
      select n.at, n.id, n.due_at, unnest(n.group_keys) as group_key from (
        select n.*, sum(cardinality(n.group_keys)) over (order by n.due_at, n.id)
            - cardinality(n.group_keys) as before
        from ${onlyIfSmall ? sql`` : sql`${planAnew()} cross join `}free as n
      ) as n
      where n.before < ${most}
    ),
    asked as materialized (
      select group_key, min(due_at) as due_at from note group by group_key
    ),
    known as materialized (
      select a.group_key, a.due_at, g.at, g.turn from asked as a cross join lateral (
        select g.ctid as at, g.turn from ${queueGroups} as g
        where g.queue = ${queue} and g.group_key = a.group_key
        offset 0
      ) as g
    ),
    waiting as materialized (
      select k.* from known as k where exists (${dueInGroup(tables, {
        queue,
        group: sql`k.group_key`,
        most: sql`1`,
      })}
      )
    ),
    ring as materialized (
      select coalesce((
        select g.turn from ${queueGroups} as g
        where g.queue = ${queue} and g.turn >= 0 and g.ready_at = '-infinity'${inSmall}
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
    admitted as (
      insert into ${queueNotes} (queue, admitted, due_at, group_keys)
      select ${queue}::text, true, min(a.due_at), array_agg(a.group_key) from (
        select a.due_at, a.group_key,
          (row_number() over (order by a.due_at) - 1) / ${sql.raw(String(MAX_KEYS))} as part
        from asked as a where a.group_key not in (select group_key from known)
      ) as a
      group by a.part
    ),
    folded as (
      update ${queueGroups} as g
      set turn = 1 + g.turn,
        ready_at = case
          when g.ready_at = '-infinity' or g.turn > r.turn then '-infinity'
          else least(g.ready_at, l.due_at)
        end
      from locked as l cross join ring as r
      where g.ctid = l.at and (g.queue = ${queue} and g.group_key = l.group_key) is true${inSmall}
    ),
    heeded as materialized (
      select n.*, n.group_key in (select group_key from locked)
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
    select (select count(*) from heeded where used)::float8 as used,
      exists (select from ${queueNotes} as n where n.queue = ${queue} and n.admitted)
        or exists (select from asked where group_key not in (select group_key from known)) as new_groups,
      exists (select from heeded where not used) or exists (
        select from ${queueNotes} as n
        where n.queue = ${queue} and not n.admitted and n.due_at <= statement_timestamp()
          and n.id not in (select id from free)
      ) as are_left${onlyIfSmall ? sql`, ${isSmall} as small` : sql``}`;
}

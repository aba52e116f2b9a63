import { type SQL, sql } from 'drizzle-orm';
import type { Value } from '../../../core/sql/kept-statement.ts';
import type { LimitTables } from './limit-tables.ts';

/** The most groups of one note. With more, rows outgrow their page, and more have to be noted again. */
const MAX_KEYS = 20;

/**
 * An insert of notes: when claims should look at which groups. Groups with the same time share rows, as few
 * rows as hold them. The order of the groups does not matter.
 *
 * **Under concurrency.** It only inserts. It waits for no other transaction, and no other transaction waits
 * for it.
 *
 * @param groups a select of `queue`, `due_at` and `group_key`
 */
export function insertNotes({ queueNotes }: Pick<LimitTables, 'queueNotes'>, groups: SQL): SQL {
  return sql`
      insert into ${queueNotes} (queue, due_at, group_keys)
      select n.queue, n.due_at, array_agg(n.group_key)
      from (
        select g.*,
          (row_number() over (partition by g.queue, g.due_at) - 1) / ${sql.raw(String(MAX_KEYS))} as part
        from (${groups}
        ) as g
      ) as n
      group by n.queue, n.due_at, n.part`;
}

export interface NextNotes {
  readonly queue: Value<string>;
  /** About how many groups, as SQL. */
  readonly most: SQL;
  /** What else is asked, as ` and …`. @default nothing */
  readonly and?: SQL | undefined;
}

/**
 * Locks the next notes of a queue that are due, with about as many groups as `most`: a select of `at`, where
 * the row stands, `id`, `due_at` and `group_keys`. Notes that another statement has locked are passed over,
 * so statements beside each other take different ones; then they may bring more groups than `most`, or fewer.
 */
export function nextNotes(
  { queueNotes }: Pick<LimitTables, 'queueNotes'>,
  { queue, most, and = sql`` }: NextNotes,
): SQL {
  const due = sql`n.queue = ${queue} and n.due_at <= statement_timestamp()${and}`;
  const order = sql`order by n.due_at, n.id`;
  return sql`
        select n.ctid as at, n.id, n.due_at, n.group_keys from ${queueNotes} as n
        where ${due}
        ${order} limit (
          select count(*) from (
            select sum(n.keys) over (${order}) - n.keys as before from (
              select n.due_at, n.id, cardinality(n.group_keys) as keys from ${queueNotes} as n
              where ${due}
              ${order} limit (select ${most})
            ) as n
          ) as n
          where n.before < ${most}
        )
        for update of n skip locked`;
}

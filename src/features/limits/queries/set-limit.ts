import { type SQL, sql } from 'drizzle-orm';
import { EVERY_GROUP } from '../../../core/job/group.ts';
import { notifyWorkers } from '../../../core/queries/presence/notify-workers.ts';
import type { Executor } from '../../../core/sql/executor.ts';
import { REQUESTED } from '../../../core/sql/wake-channel.ts';
import type { LimitOverride, StoredLimit } from '../settings/limit-record.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';
import { insertNotes } from '../sql/note-groups.ts';
import { limitColumns, toStoredLimit } from './find-limits.ts';

/** Which limit, and what to set of it at run time. */
export interface LimitToSet extends Pick<StoredLimit, 'kind' | 'group'> {
  readonly queue: string;
  /** `null` removes what was set before, so that what the code declares holds again. */
  readonly override: LimitOverride | null;
}

/**
 * Sets a limit in the place of what was set before, or removes that. Returns it as it is stored; `undefined`
 * for one that was removed. What workers have of it stays theirs.
 *
 * **Under concurrency.** Waits for another open transaction that has just set the same limit, and then
 * replaces what that has set. It holds up no worker: they keep to the old limit until the transaction ends,
 * and then look at the groups that it is of.
 */
export async function setLimit(
  db: Executor,
  tables: GroupTables,
  limit: LimitToSet,
  channel: string | undefined,
): Promise<StoredLimit | undefined> {
  const [row] = await queryLimitRows(db, tables, setLimitQuery(tables, limit));
  if (row !== undefined && channel !== undefined) await notifyWorkers(db, tables, REQUESTED, channel);
  return row === undefined || limit.override === null ? undefined : toStoredLimit(row);
}

export function setLimitQuery(tables: GroupTables, limit: LimitToSet): SQL {
  const { override } = limit;
  return sql`
    with s as (${override === null ? removeRow(tables, limit) : putRow(tables, limit, override)}
      returning s.*
    )${noteGroups(tables, limit)}
    select ${limitColumns} from s`;
}

function putRow(
  { queueLimits }: GroupTables,
  { queue, kind, group }: LimitToSet,
  override: LimitOverride,
): SQL {
  const { concurrency = null, rate, weight = null } = override;
  const rateLimit = rate?.limit ?? null;
  const ratePerMs = rate?.perMs ?? null;
  return sql`
      insert into ${queueLimits} as s (
        queue, kind, group_key, concurrency, rate_limit, rate_per_ms, weight, updated_at
      )
      values (${queue}, ${kind}, ${group}, ${concurrency}::int4, ${rateLimit}::int4, ${ratePerMs}::int8,
        ${weight}::int4, statement_timestamp())
      on conflict (queue, kind, group_key) do update set concurrency = excluded.concurrency,
        rate_limit = excluded.rate_limit, rate_per_ms = excluded.rate_per_ms, weight = excluded.weight,
        updated_at = excluded.updated_at`;
}

function removeRow({ queueLimits }: GroupTables, { queue, kind, group }: LimitToSet): SQL {
  return sql`
      delete from ${queueLimits} as s
      where s.queue = ${queue} and s.kind = ${kind} and s.group_key = ${group}`;
}

/**
 * Notes for the claims to look at a group whose limit has changed, or at all of a queue: with another limit
 * what waits may start. Nothing for the limit of a queue or a kind.
 *
 * It notes groups wherever they stand: a claim that still uses the old limit may be about to park one. One
 * that is named is noted although it may be unknown: others may use it first while the transaction is open.
 */
function noteGroups(tables: GroupTables, { queue, group }: LimitToSet): SQL {
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

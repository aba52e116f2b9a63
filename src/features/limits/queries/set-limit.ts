import { type SQL, sql } from 'drizzle-orm';
import { notifyWorkers } from '../../../core/queries/presence/notify-workers.ts';
import type { Executor } from '../../../core/sql/executor.ts';
import { REQUESTED } from '../../../core/sql/wake-channel.ts';
import type { LimitRow } from '../settings/limit-record.ts';
import { limitColumns, toLimitRow } from '../sql/limit-row.ts';
import { type GroupTables, queryLimitRows } from '../sql/limit-tables.ts';
import { notedForLimit } from '../sql/limited-groups.ts';

/** A limit to set at run time. */
export type LimitToSet = Omit<LimitRow, 'updatedAtMs'>;

/**
 * Sets a limit in the place of what was set before. Returns it as it is stored.
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
): Promise<LimitRow> {
  const [row] = await queryLimitRows(db, tables, setLimitQuery(tables, limit));
  if (channel !== undefined) await notifyWorkers(db, tables, REQUESTED, channel);
  return toLimitRow(row ?? {});
}

export function setLimitQuery(tables: GroupTables, limit: LimitToSet): SQL {
  const { queueLimits } = tables;
  const { queue, kind, group, concurrency, rateLimit, ratePerMs, weight } = limit;
  return sql`
    with s as (
      insert into ${queueLimits} as s (
        queue, kind, group_key, concurrency, rate_limit, rate_per_ms, weight, updated_at
      )
      values (${queue}, ${kind}, ${group}, ${concurrency}::int4, ${rateLimit}::int4, ${ratePerMs}::int8,
        ${weight}::int4, statement_timestamp())
      on conflict (queue, kind, group_key) do update set concurrency = excluded.concurrency,
        rate_limit = excluded.rate_limit, rate_per_ms = excluded.rate_per_ms, weight = excluded.weight,
        updated_at = excluded.updated_at
      returning s.*
    )${notedForLimit(tables, limit)}
    select ${limitColumns} from s`;
}

import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { REQUESTED } from '../../sql/wake-channel.ts';
import { notified } from '../../sql/wake-up.ts';

/**
 * Pauses a queue; returns `false` when it was already paused. Workers are notified on `channel` when the
 * transaction commits, unless that is `undefined`.
 *
 * **Under concurrency.** Waits for another open transaction that has just paused or resumed the same queue,
 * and then sees what that did.
 */
export async function pauseQueue(
  db: Executor,
  tables: QueueTables,
  pause: { readonly queue: string; readonly channel: string | undefined },
): Promise<boolean> {
  const rows = await queryRows(db, tables, pauseQueueQuery(tables, pause));
  return rows.length > 0;
}

export function pauseQueueQuery(
  { queuePauses }: QueueTables,
  { queue, channel }: { readonly queue: string; readonly channel: string | undefined },
): SQL {
  return sql`
    with paused as (
      insert into ${queuePauses} (queue, paused_at) values (${queue}, statement_timestamp())
      on conflict (queue) do nothing
      returning queue
    )
    select p.queue, ${channel === undefined ? sql`false` : notified(channel, sql`${REQUESTED}`)} as woke
    from paused as p`;
}

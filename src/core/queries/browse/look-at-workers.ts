import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { dateOf, epochMs } from '../../sql/epoch-ms.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';

export interface WorkerLine {
  readonly id: number;
  /** 'host:pid' unless the app names it. */
  readonly name: string;
  readonly queues: readonly string[];
  readonly startedAt: Date;
  readonly seenAt: Date;
  /** Whether it holds a session, which ends with its process; otherwise it lives by its heartbeat alone. */
  readonly session: boolean;
  readonly holds: number;
}

export interface WorkersToLookAt {
  /** Only workers that serve one of these, with these of their queues and what they hold of them. */
  readonly queues: readonly string[] | undefined;
  readonly limit: number;
}

/**
 * The workers, by name, with what they hold. It reads every live job: the caller bounds its time.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function lookAtWorkers(
  db: Executor,
  tables: QueueTables,
  look: WorkersToLookAt,
): Promise<WorkerLine[]> {
  const rows = await queryRows(db, tables, lookAtWorkersQuery(tables, look));
  return rows.map((row) => ({
    id: Number(row.id),
    name: String(row.name),
    // Drivers decode jsonb; only workers write the column, as a list of names.
    queues: row.queues as string[],
    startedAt: dateOf(row.started_at),
    seenAt: dateOf(row.seen_at),
    session: row.session === true,
    holds: Number(row.holds),
  }));
}

/** @crossesQueues what workers hold in every queue; the caller limits its time */
export function lookAtWorkersQuery(
  { queueWorkers, queueJobs }: QueueTables,
  { queues, limit }: WorkersToLookAt,
): SQL {
  const inQueues =
    queues && sql` in (select jsonb_array_elements_text(${JSON.stringify(queues)}::text::jsonb))`;
  const served =
    inQueues === undefined
      ? undefined
      : sql`
    cross join lateral (
      select jsonb_agg(q.queue order by q.place) as queues
      from jsonb_array_elements_text(w.queues) with ordinality as q(queue, place)
      where q.queue${inQueues}
    ) as s`;
  return sql`
    select w.id, w.name, ${sql.raw(served === undefined ? 'w.queues' : 's.queues')},
      ${epochMs('w.started_at')} as started_at,
      ${epochMs('w.seen_at')} as seen_at, w.session is not null as session,
      coalesce(h.holds, 0)::float8 as holds
    from ${queueWorkers} as w${served ?? sql``}
    left join (
      select j.worker_id, count(*) as holds from ${queueJobs} as j
      where j.worker_id is not null${inQueues === undefined ? sql`` : sql` and j.queue${inQueues}`}
      group by j.worker_id
    ) as h on h.worker_id = w.id${sql.raw(served === undefined ? '' : ' where s.queues is not null')}
    order by w.name, w.id limit ${limit}`;
}

import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { BATCHES_ENTRY, type TablesOfBatches } from '../sql/batch-tables.ts';

/**
 * The id of the flow that a job is part of, or for whose end it waits; `undefined` for none.
 *
 * **Under concurrency.** A plain read.
 */
export async function findFlowOfJob(
  db: Runner,
  tables: TablesOfBatches,
  id: number,
): Promise<number | undefined> {
  const query = findFlowOfJobQuery(tables, id);
  const [row] = await queryRows(db, tables, query, { entry: BATCHES_ENTRY });
  return row === undefined ? undefined : Number(row.flow_id);
}

/** @crossesQueues finds a job by its id: the caller does not know the queue */
export function findFlowOfJobQuery(tables: TablesOfBatches, id: number): SQL {
  const { queueJobs, queueResults, queueBatches, queueWaits } = tables;
  return sql`
    with batches as materialized (
      select j.batch_id from ${queueJobs} as j where j.id = ${id}::int8
      union all
      select r.batch_id from ${queueResults} as r where r.job_id = ${id}::int8
      union all
      (
        select w.batch_id from ${queueWaits} as w
        where w.job_id = ${id}::int8 and w.policy in ('run', 'cancel') limit 1
      )
    )
    select b.flow_id from ${queueBatches} as b
    where b.id = any(array(select batch_id from batches)) and b.flow_id is not null limit 1`;
}

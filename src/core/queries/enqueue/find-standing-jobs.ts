import { type SQL, sql } from 'drizzle-orm';
import { storedKeyOf } from '../../job/key-rule.ts';
import type { NewJob } from '../../job/new-job.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { jsonRows } from '../../sql/json-rows.ts';

/**
 * The ids of the live jobs with the same unique keys as these, in input order; `undefined` where there is
 * none any more. Where these have a rule for their key, it is the jobs that wait with that.
 *
 * **Under concurrency.** A statement after the insert, because the insert cannot see a row that was committed
 * after it started. The live job may have finished in between: then there is no id, and the insert is tried
 * again.
 */
export async function findStandingJobs(
  db: Executor,
  tables: QueueTables,
  jobs: readonly NewJob[],
): Promise<(number | undefined)[]> {
  const ids = new Array<number | undefined>(jobs.length).fill(undefined);
  for (const row of await queryRows(db, tables, findStandingJobsQuery(tables, jobs))) {
    ids[Number(row.place) - 1] = Number(row.id);
  }
  return ids;
}

export function findStandingJobsQuery({ queueJobs }: QueueTables, jobs: readonly NewJob[]): SQL {
  const column = jobs[0]?.rule === undefined ? 'unique_key' : 'waiting_key';
  const sameKey = sql.raw(`j.${column} = i.${column}`);
  const keys = jobs.map(({ queue, kind, uniqueKey, rule }) =>
    JSON.stringify({ queue, kind, [column]: rule === undefined ? uniqueKey : storedKeyOf(rule) }),
  );
  return sql`
    select i.place, j.id
    from ${jsonRows(keys, `queue text, kind text, ${column} text`)} as i
    join ${queueJobs} as j on j.queue = i.queue and j.kind = i.kind and ${sameKey}`;
}

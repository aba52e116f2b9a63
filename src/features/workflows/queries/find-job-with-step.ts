import { type SQL, sql } from 'drizzle-orm';
import { AWAITED } from '../../../core/job/awaited.ts';
import { ownColumnsOf } from '../../../core/schema/own-columns.ts';
import type { FinalState } from '../../../core/schema/queue-results.ts';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import { ownRecord, selectOwn } from '../../../core/sql/own-values.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/** A job, live or finished, as another one can be made of it. */
export interface JobWithStep {
  readonly queue: string;
  readonly kind: string;
  readonly state: 'live' | FinalState;
  readonly hasStep: boolean;
  /** JSON text; `undefined`: it is not kept. */
  readonly payload: string | undefined;
  readonly priority: number;
  readonly maxAttempts: number;
  readonly group: string | undefined;
  readonly cost: number | undefined;
  /** JSON text, with the job that the other one is made of. */
  readonly metadata: string;
  readonly own: Readonly<Record<string, unknown>>;
}

/** The key in the metadata of a fork that names the job it was forked from. */
const FORKED_FROM = 'forkedFrom';

/**
 * A job by its id, and whether it has recorded a step. `undefined`: there is no such job.
 *
 * **Under concurrency.** A plain read. A job is live until the statement that writes its result, so it is
 * always seen in one of the two tables.
 */
export async function findJobWithStep(
  db: Executor,
  tables: TablesOfWorkflows,
  id: number,
  step: string,
): Promise<JobWithStep | undefined> {
  const query = findJobWithStepQuery(tables, id, step);
  const [row] = await queryRows(db, tables, query, { entry: WORKFLOWS_ENTRY });
  if (row === undefined) return undefined;
  return {
    queue: String(row.queue),
    kind: String(row.kind),
    // Of a live job the query says so; the column of results has a CHECK.
    state: row.state as JobWithStep['state'],
    hasStep: row.has_step === true,
    payload: row.payload === null ? undefined : String(row.payload),
    priority: Number(row.priority),
    maxAttempts: Number(row.max_attempts),
    group: row.group_key === null ? undefined : String(row.group_key),
    cost: row.weight === null ? undefined : Number(row.weight),
    metadata: String(row.metadata),
    own: ownRecord(ownColumnsOf(tables.queueJobs), row),
  };
}

/**
 * Payload and metadata are texts: a driver would round numbers that JavaScript cannot hold. The step is not
 * looked for with `exists`: for that the planner may read the steps of all jobs into a hash table.
 *
 * @crossesQueues finds a job by its id: the caller does not know the queue
 */
export function findJobWithStepQuery(
  { queueJobs, queueResults, queueSteps }: TablesOfWorkflows,
  id: number,
  step: string,
): SQL {
  const own = ownColumnsOf(queueJobs);
  const columns = (alias: 'j' | 'r', jobId: string) => sql`${sql.raw(alias)}.queue, ${sql.raw(alias)}.kind,
      ${sql.raw(alias)}.payload::text as payload, ${sql.raw(alias)}.priority, ${sql.raw(alias)}.max_attempts,
      ${sql.raw(alias)}.group_key, ${sql.raw(alias)}.weight,
      (${sql.raw(alias)}.metadata - ${AWAITED}::text
        || jsonb_build_object(${FORKED_FROM}::text, ${id}::int8))::text as metadata,
      coalesce((
        select true from ${queueSteps} as s where s.job_id = ${sql.raw(`${alias}.${jobId}`)}
          and s.queue = ${sql.raw(alias)}.queue and s.name = ${step} and s.name <> 'undo'
          and s.name not like 'undo:%'
      ), false) as has_step${selectOwn(own, alias)}`;
  return sql`
    select 'live' as state, ${columns('j', 'id')} from ${queueJobs} as j where j.id = ${id}::int8
    union all
    select r.state, ${columns('r', 'job_id')} from ${queueResults} as r where r.job_id = ${id}::int8`;
}

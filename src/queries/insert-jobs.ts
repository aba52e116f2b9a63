import { type SQL, sql } from 'drizzle-orm';
import type { NewJob } from '../job/new-job.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { type Executor, queryRows } from './executor.ts';
import { jsonRows } from './json-rows.ts';
import { quotedName } from './quoted-name.ts';

/**
 * Inserts any number of jobs in one statement; answers the id of each in input order, `undefined` where a live job with the
 * same unique key stands already.
 *
 * **Under concurrency.** The unique index decides. A key that another open transaction has just inserted makes this statement
 * wait for that transaction, and then insert if it rolled back, or leave the job out if it committed. Keys are inserted in
 * sorted order, so two bulk statements with the same keys wait for each other and never deadlock. Nothing is visible
 * to workers before the caller's transaction commits; nothing stays if it rolls back.
 */
export async function insertJobs(
  db: Executor,
  tables: QueueTables,
  jobs: readonly NewJob[],
): Promise<(number | undefined)[]> {
  if (jobs.length === 0) return [];
  if (jobs.length > 1 && jobs.some((job) => job.uniqueKey !== null)) {
    const ids = new Array<number | undefined>(jobs.length).fill(undefined);
    for (const row of await queryRows(db, tables, insertKeyedJobsQuery(tables, jobs))) {
      ids[Number(row.place) - 1] = Number(row.id);
    }
    return ids;
  }
  const rows = await queryRows(db, tables, insertJobsQuery(tables, jobs));
  return jobs.map((_job, index) => (rows[index] === undefined ? undefined : Number(rows[index].id)));
}

/**
 * One job, or any number without unique keys: only a lone job can be refused, and `RETURNING` answers in the order of the
 * insert, so a row is told by its position.
 */
export function insertJobsQuery({ queueJobs }: QueueTables, jobs: readonly NewJob[]): SQL {
  return sql`
    with i as (${input(jobs)})
    insert into ${queueJobs} (${COLUMNS})
    select ${COLUMNS} from i order by place
    on conflict (queue, kind, unique_key) where unique_key is not null do nothing
    returning id`;
}

/**
 * Several jobs, some with unique keys. Ids are drawn first, in input order, and rows are inserted in the order of their keys:
 * so a row is told by its id although some are left out, and jobs of one bulk still run in input order.
 */
export function insertKeyedJobsQuery({ queueJobs }: QueueTables, jobs: readonly NewJob[]): SQL {
  return sql`
    with i as (${input(jobs)}),
    numbered as materialized (
      select nextval(s.sequence) as id, o.*
      from (select pg_get_serial_sequence(${quotedName(queueJobs)}, 'id')::regclass as sequence) as s,
        (select * from i order by place) as o
    ),
    inserted as (
      insert into ${queueJobs} (id, ${COLUMNS}) overriding system value
      select id, ${COLUMNS} from numbered order by queue, kind, unique_key, place
      on conflict (queue, kind, unique_key) where unique_key is not null do nothing
      returning id
    )
    select n.place, inserted.id from inserted join numbered as n on n.id = inserted.id`;
}

const COLUMNS = sql.raw(
  'queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata',
);

/** The jobs as rows of these columns and `place`, their place in the input. */
function input(jobs: readonly NewJob[]): SQL {
  return sql`
      select queue, kind, coalesce(payload, 'null'::jsonb) as payload, priority,
        coalesce(to_timestamp(run_at_ms / 1000), statement_timestamp() + delay_ms * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, max_attempts, unique_key, metadata, place
      from ${jsonRows(
        jobs.map(toJson),
        'queue text, kind text, payload jsonb, priority int2, delay_ms float8, run_at_ms float8, max_attempts int2, unique_key text, metadata jsonb',
      )} as r`;
}

function toJson(job: NewJob): string {
  return (
    `{"queue":${JSON.stringify(job.queue)},"kind":${JSON.stringify(job.kind)},"payload":${job.payload}` +
    `,"priority":${job.priority},"delay_ms":${job.delayMs},"run_at_ms":${job.runAtMs},"max_attempts":${job.maxAttempts}` +
    `,"unique_key":${JSON.stringify(job.uniqueKey)},"metadata":${job.metadata}}`
  );
}

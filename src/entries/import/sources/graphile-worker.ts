import { sql } from 'drizzle-orm';
import { checkOptions, namesOf, type RawRow } from '../../../internal.ts';
import { foreignState, type ReadJob } from '../foreign-job.ts';
import type { TableSource } from '../source.ts';
import {
  arrayOf,
  checkSchema,
  checkTable,
  foreignCounts,
  foreignRows,
  inOrder,
  jsonOf,
  listedIds,
  locking,
  quoted,
  rowOf,
  textArray,
  textOrNothing,
  timeOf,
} from './foreign-rows.ts';

/** The options of {@link from.graphileWorker}. */
export interface GraphileWorkerOptions {
  /** The schema of graphile-worker's tables. @default 'graphile_worker' */
  schema?: string | undefined;
}

const OPTIONS = namesOf<GraphileWorkerOptions>({ schema: true });

/**
 * The jobs of graphile-worker that are not locked and have attempts left. Its workers lock the jobs that they
 * claim, as this library does, so only one of the two takes each job.
 */
export function graphileWorkerSource(options: GraphileWorkerOptions = {}): TableSource {
  const what = 'from.graphileWorker';
  const { schema = 'graphile_worker' } = checkOptions(`${what}: options`, options, OPTIONS);
  const place = { schema: checkSchema(what, schema), table: '_private_jobs' };
  const jobs = quoted(place);
  const tasks = quoted({ schema, table: '_private_tasks' });
  const queues = quoted({ schema, table: '_private_job_queues' });
  const title = 'graphile-worker';
  return {
    type: 'table',
    title,
    async count(db) {
      await checkTable(db, place, title);
      return await foreignCounts(
        db,
        sql`
          select t.identifier as name,
            count(*) filter (where j.locked_at is null and j.attempts < j.max_attempts)::float8 as waiting,
            count(*) filter (where j.locked_at is not null)::float8 as active
          from ${jobs} as j join ${tasks} as t on t.id = j.task_id
          group by t.identifier`,
      );
    },
    async list(db, { names, after, limit }) {
      return await listedIds(
        db,
        sql`
          select j.id::text as id
          from ${jobs} as j join ${tasks} as t on t.id = j.task_id
          where t.identifier = any(${textArray(names)}) and j.id > ${after ?? '0'}::text::int8
            and j.locked_at is null and j.attempts < j.max_attempts
          order by j.id limit ${limit}`,
      );
    },
    async read(db, places, lock) {
      const rows = await foreignRows(
        db,
        sql`
          select to_json(j)::text as job, j.payload::text as json, j.run_at > statement_timestamp() as later,
            t.identifier as name, q.queue_name
          from ${jobs} as j
          join ${tasks} as t on t.id = j.task_id
          left join ${queues} as q on q.id = j.job_queue_id
          where j.id = any(${arrayOf(places, sql.raw('int8'))})
            and j.locked_at is null and j.attempts < j.max_attempts${locking(lock)}`,
      );
      return inOrder(rows.map(toReadJob), places);
    },
    async remove(db, found) {
      const rows = await foreignRows(
        db,
        sql`
          delete from ${jobs} as j where j.id = any(${arrayOf(
            found.map(({ id }) => id),
            sql.raw('int8'),
          )})
          returning j.id`,
      );
      return rows.length;
    },
  };
}

function toReadJob({ job, json, later, name, queue_name }: RawRow): ReadJob {
  const row = rowOf(job);
  const attempts = Number(row.attempts);
  const priority = Number(row.priority);
  return {
    id: String(row.id),
    name: String(name),
    data: row.payload ?? null,
    json: jsonOf(json),
    priority,
    stepsBehind: priority,
    runAt: timeOf(row.run_at),
    attempts,
    attemptsLeft: Number(row.max_attempts) - attempts,
    createdAt: timeOf(row.created_at),
    // A job with a key is replaced there until it runs; here that ends with its first attempt.
    key: attempts === 0 ? textOrNothing(row.key) : undefined,
    keyHolds: 'waiting',
    serial: textOrNothing(queue_name),
    unfit: undefined,
    state: foreignState(attempts, later === true),
  };
}

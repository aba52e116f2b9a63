import { sql } from 'drizzle-orm';
import { checkOptions, checkText, MAX_UNIQUE_KEY_BYTES, namesOf, type RawRow } from '../../../internal.ts';
import { foreignState, type ReadJob } from '../foreign-job.ts';
import type { TableSource } from '../source.ts';
import { bullmqKey, bullmqUnfit } from './bullmq-jobs.ts';
import {
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
} from './foreign-rows.ts';

/** The options of {@link from.bullmqPostgres}. */
export interface BullmqPostgresOptions {
  /** BullMQ's queue. */
  queue: string;
  /** The schema of BullMQ's tables. @default 'bullmq' */
  schema?: string | undefined;
}

const OPTIONS = namesOf<BullmqPostgresOptions>({ queue: true, schema: true });

/**
 * The jobs of one queue of BullMQ's Postgres backend that are `waiting` or `delayed`. Its workers lock what
 * they claim as we do, so each job is taken by one of both.
 */
export function bullmqPostgresSource(options: BullmqPostgresOptions): TableSource {
  const what = 'from.bullmqPostgres';
  const { queue, schema = 'bullmq' } = checkOptions(`${what}: options`, options, OPTIONS);
  checkText(`${what}: queue`, queue, MAX_UNIQUE_KEY_BYTES);
  const place = { schema: checkSchema(what, schema), table: 'job' };
  const job = quoted(place);
  const dedup = quoted({ schema, table: 'dedup' });
  const next = quoted({ schema, table: 'dedup_next' });
  const title = 'BullMQ';
  return {
    type: 'table',
    title,
    async count(db) {
      await checkTable(db, place, title);
      return await foreignCounts(
        db,
        sql`
          select j.name, count(*) filter (where j.state <> 'active')::float8 as waiting,
            count(*) filter (where j.state = 'active')::float8 as active
          from ${job} as j
          where j.queue = ${queue} and j.state in ('waiting', 'delayed', 'waiting-children', 'active')
          group by j.name`,
      );
    },
    async list(db, { names, after, limit }) {
      return await listedIds(
        db,
        sql`
          select j.id
          from ${job} as j
          where j.queue = ${queue} and j.name = any(${textArray(names)}) and j.id > ${after ?? ''}
            and j.state in ('waiting', 'delayed', 'waiting-children')
          order by j.id limit ${limit}`,
      );
    },
    async read(db, places, lock) {
      const rows = await foreignRows(
        db,
        sql`
          select to_json(j)::text as job, j.data::text as json,
            to_timestamp(j.process_at_ms / 1000.0) > statement_timestamp() as later,
            d.job_id is not null and d.expire_at_ms is null as holds_key, n.dedup_id is not null as has_next
          from ${job} as j
          left join ${dedup} as d on d.queue = j.queue and d.dedup_id = j.dedup_id and d.job_id = j.id
          left join ${next} as n on n.queue = d.queue and n.dedup_id = d.dedup_id
          where j.queue = ${queue} and j.id = any(${textArray(places)})
            and j.state in ('waiting', 'delayed', 'waiting-children')${locking(lock)}`,
      );
      return inOrder(rows.map(toReadJob), places);
    },
    async remove(db, jobs) {
      const ids = textArray(jobs.map(({ id }) => id));
      const rows = await foreignRows(
        db,
        sql`
          with freed as (
            delete from ${dedup} as d where d.queue = ${queue} and d.job_id = any(${ids})
          )
          delete from ${job} as j where j.queue = ${queue} and j.id = any(${ids})
          returning j.id`,
      );
      return rows.length;
    },
  };
}

function toReadJob({ job, json, later, holds_key, has_next }: RawRow): ReadJob {
  const row = rowOf(job);
  const attempts = Number(row.attempts_made);
  const priority = Number(row.priority);
  const id = String(row.id);
  const added = Number(row.added_at_ms);
  const dedupId = holds_key === true ? String(row.dedup_id) : undefined;
  return {
    id,
    name: String(row.name),
    data: row.data ?? null,
    json: jsonOf(json),
    priority,
    // 0 is none there, and goes before all others; of those the smallest is first.
    stepsBehind: priority,
    runAt: new Date(row.state === 'delayed' ? Number(row.process_at_ms) : added),
    attempts,
    attemptsLeft: Math.max(Number(row.max_attempts) - attempts, 1),
    createdAt: new Date(added),
    key: bullmqKey(id, dedupId),
    keyHolds: 'live',
    serial: undefined,
    unfit: bullmqUnfit({
      hasChildren: row.state === 'waiting-children',
      hasParent: row.parent_id !== null,
      isScheduled: row.scheduler_id !== null,
      hasNext: has_next === true,
    }),
    state: foreignState(attempts, row.state === 'delayed' && later === true),
  };
}

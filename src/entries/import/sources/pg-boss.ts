import { type SQL, sql } from 'drizzle-orm';
import { checkOptions, namesOf, type RawRow } from '../../../internal.ts';
import { foreignState, type ReadJob } from '../foreign-job.ts';
import type { Place, TableSource } from '../source.ts';
import {
  arrayOf,
  checkSchema,
  checkTable,
  foreignCounts,
  foreignRows,
  inOrder,
  jsonOf,
  locking,
  quoted,
  rowOf,
  textArray,
  textOrNothing,
  timeOf,
} from './foreign-rows.ts';

/** The options of {@link from.pgBoss}. */
export interface PgBossOptions {
  /** The schema of pg-boss's tables. @default 'pgboss' */
  schema?: string | undefined;
}

const OPTIONS = namesOf<PgBossOptions>({ schema: true });

/** Policies by which two jobs of a key never run side by side, and which no unique key replaces. */
const SERIAL: readonly unknown[] = ['singleton', 'stately', 'key_strict_fifo'];

/**
 * The jobs of pg-boss that are `created` or in `retry`. Its workers lock what they claim as we do, so each
 * job is taken by one of both.
 */
export function pgBossSource(options: PgBossOptions = {}): TableSource {
  const { schema = 'pgboss' } = checkOptions('from.pgBoss: options', options, OPTIONS);
  const place = { schema: checkSchema('from.pgBoss', schema), table: 'job' };
  const job = quoted(place);
  const title = 'pg-boss';
  return {
    type: 'table',
    title,
    async count(db) {
      await checkTable(db, place, title);
      return await foreignCounts(
        db,
        sql`
          select j.name, count(*) filter (where j.state in ('created', 'retry'))::float8 as waiting,
            count(*) filter (where j.state = 'active')::float8 as active
          from ${job} as j
          where j.state <= 'active' and j.name not like '\\_\\_pgboss\\_\\_%'
          group by j.name`,
      );
    },
    async list(db, { names, after, limit }) {
      // The primary key: every partition has it, and nothing that happens meanwhile moves a job in it.
      const [name, id]: unknown[] = after === undefined ? [] : JSON.parse(after);
      const further = after === undefined ? sql`` : sql` and (j.name, j.id) > (${name}::text, ${id}::uuid)`;
      const rows = await foreignRows(
        db,
        sql`
          select j.name, j.id::text as id
          from ${job} as j
          where j.name = any(${textArray(names)}) and j.state in ('created', 'retry')${further}
          order by j.name, j.id limit ${limit}`,
      );
      return rows.map((row) => placeOf({ name: String(row.name), id: String(row.id) }));
    },
    async read(db, places, lock) {
      // `is true` keeps a planner without statistics from an index of the state, and all that are in it.
      const rows = await foreignRows(
        db,
        sql`
          select to_json(j)::text as job, j.data::text as json, j.start_after > statement_timestamp() as later
          from ${job} as j
          where ${among(places.map(nameAndId))}
            and (j.state in ('created', 'retry')) is true${locking(lock)}`,
      );
      return inOrder(rows.map(toReadJob), places, placeOf);
    },
    async remove(db, jobs) {
      const rows = await foreignRows(
        db,
        sql`delete from ${job} as j where ${among(jobs)} returning j.id::text as id`,
      );
      return rows.length;
    },
  };
}

/** What the primary key is made of. */
interface NameAndId {
  readonly name: string;
  readonly id: string;
}

function placeOf({ name, id }: NameAndId): Place {
  return JSON.stringify([name, id]);
}

function nameAndId(place: Place): NameAndId {
  const [name, id]: string[] = JSON.parse(place);
  return { name: String(name), id: String(id) };
}

/** By the index of the ids. Jobs of different names may have the same one. */
function among(jobs: readonly NameAndId[]): SQL {
  const ids = arrayOf(
    jobs.map(({ id }) => id),
    sql.raw('uuid'),
  );
  return sql`j.name = any(${textArray([...new Set(jobs.map(({ name }) => name))])})
            and j.id = any(${ids}) and (j.name, j.id) in (
              select * from unnest(${textArray(jobs.map(({ name }) => name))}, ${ids})
            )`;
}

function toReadJob({ job, json, later }: RawRow): ReadJob {
  const row = rowOf(job);
  const retryCount = Number(row.retry_count);
  // `retry_count` counts the claims after the first: of a job that has failed once it is still 0.
  const attempts = row.state === 'retry' ? retryCount + 1 : 0;
  const priority = Number(row.priority);
  const serial = SERIAL.includes(row.policy)
    ? `${String(row.name)} ${String(row.singleton_key ?? '')}`
    : undefined;
  return {
    id: String(row.id),
    name: String(row.name),
    data: row.data ?? null,
    json: jsonOf(json),
    priority,
    // The greatest is first there.
    stepsBehind: -priority,
    runAt: timeOf(row.start_after),
    attempts,
    attemptsLeft: Math.max(Number(row.retry_limit) + 1 - attempts, 1),
    createdAt: timeOf(row.created_on),
    ...keyOf(row),
    serial: serial?.trim(),
    unfit: unfit(row),
    state: foreignState(attempts, later === true),
  };
}

/** A key counts there as its policy says; without one it is no more than a note. */
function keyOf(row: Readonly<Record<string, unknown>>): Pick<ReadJob, 'key' | 'keyHolds'> {
  const { policy, state, upsert_by_key } = row;
  const key = textOrNothing(row.singleton_key);
  // Where there is none, the whole queue is one.
  if (policy === 'exclusive') return { key: key ?? String(row.name), keyHolds: 'live' };
  const untilClaimed = policy === 'short' || policy === 'stately' || upsert_by_key === true;
  if (!untilClaimed || state !== 'created') return { key: undefined, keyHolds: 'live' };
  return { key: key ?? String(row.name), keyHolds: 'waiting' };
}

function unfit({ blocked, blocking }: Readonly<Record<string, unknown>>): string | undefined {
  if (blocked === true) return 'It waits for other jobs of a flow';
  return blocking === true ? 'Other jobs of a flow wait for it' : undefined;
}

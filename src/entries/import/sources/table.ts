import { type SQL, type SQLWrapper, sql, type Table } from 'drizzle-orm';
import {
  checkObject,
  checkOptions,
  checkText,
  MAX_UNIQUE_KEY_BYTES,
  namesOf,
  type RawRow,
  shown,
} from '../../../internal.ts';
import { foreignState, type ReadJob } from '../foreign-job.ts';
import type { TableSource } from '../source.ts';
import {
  arrayOf,
  foreignCounts,
  foreignRows,
  inOrder,
  jsonOf,
  textArray,
  textOrNothing,
} from './foreign-rows.ts';

/** The columns of a hand-written table, each as a Drizzle column or an SQL expression. */
export interface JobTableColumns {
  /** Unique, and not null. */
  id: SQLWrapper;
  /** JSON; or text, which comes as a string. */
  payload: SQLWrapper;
  /** What a job is called in the mapping. @default none: all have the name of {@link JobTableOptions.name} */
  name?: SQLWrapper | undefined;
  /** `timestamptz`; a `timestamp` is read as UTC. Null is now. @default now */
  runAt?: SQLWrapper | undefined;
  priority?: SQLWrapper | undefined;
  /** How many attempts it has behind it. @default 0 */
  attempts?: SQLWrapper | undefined;
  /** How many it has in all. @default the definition's */
  maxAttempts?: SQLWrapper | undefined;
  /** Becomes the unique key; null is none. @default none */
  key?: SQLWrapper | undefined;
  createdAt?: SQLWrapper | undefined;
}

/** The options of {@link from.table}. */
export interface JobTableOptions {
  /** A Drizzle table, or an SQL expression for its name. */
  table: Table | SQLWrapper;
  columns: JobTableColumns;
  /** Which rows wait: `eq(tasks.status, 'pending')`. Asked again once a row is locked. */
  where: SQLWrapper;
  /** Which rows a worker has; only counted. @default none */
  active?: SQLWrapper | undefined;
  /** The name of all rows, where no column says it. */
  name?: string | undefined;
  /** Which priorities run first, and 0 is the definition's. @default 'smaller' */
  first?: 'smaller' | 'greater' | undefined;
  /**
   * What becomes of an imported row: it is deleted, or updated by the `set` of an `update`, after which
   * `where` must no longer find it: sql`status = 'imported'`.
   * @default 'delete'
   */
  take?: 'delete' | SQL | undefined;
}

const OPTIONS = namesOf<JobTableOptions>({
  table: true,
  columns: true,
  where: true,
  active: true,
  name: true,
  first: true,
  take: true,
});
const COLUMNS = namesOf<JobTableColumns>({
  id: true,
  payload: true,
  name: true,
  runAt: true,
  priority: true,
  attempts: true,
  maxAttempts: true,
  key: true,
  createdAt: true,
});

/** Rows of a table of the app's own. */
export function jobTableSource(options: JobTableOptions): TableSource {
  const { table, columns, where, active, name, first = 'smaller', take = 'delete' } = checked(options);
  const { id } = columns;
  const named = columns.name ?? sql`${name}::text`;
  const given = (column: SQLWrapper | undefined, cast: string): SQL =>
    column === undefined ? sql`null` : sql`(${column})::${sql.raw(cast)}`;
  const epochMs = (column: SQLWrapper | undefined): SQL =>
    column === undefined ? sql`null` : sql`extract(epoch from (${column})) * 1000`;
  /** The type of the ids, once one has told it. */
  let idType = sql.raw('text');
  const ids = (places: readonly string[]): SQL => sql`(${id}) = any(${arrayOf(places, idType)})`;
  const sign = first === 'smaller' ? 1 : -1;
  return {
    type: 'table',
    title: 'the table',
    async count(db) {
      return await foreignCounts(
        db,
        sql`
          select (${named})::text as name, count(*) filter (where ${where})::float8 as waiting,
            ${active === undefined ? sql`0` : sql`count(*) filter (where ${active})`}::float8 as active
          from ${table} where (${where})${active === undefined ? sql`` : sql` or (${active})`} group by 1`,
      );
    },
    async list(db, { names, after, limit }) {
      const further = after === undefined ? sql`` : sql` and (${id}) > ${after}::text::${idType}`;
      // Ordered by its place: a name would be that of the column `id` here, if theirs is called so.
      const rows = await foreignRows(
        db,
        sql`
          select (l.id)::text as id, format_type(pg_typeof(l.id), -1) as id_type
          from (
            select ${id} as id from ${table}
            where (${where}) and (${named})::text = any(${textArray(names)})${further}
            order by 1 limit ${limit}
          ) as l order by l.id`,
      );
      const type = rows[0]?.id_type;
      // As PostgreSQL writes the name of a type, quoted where it must be; with -1 a `char` keeps its length.
      if (typeof type === 'string') idType = sql.raw(type);
      return rows.map((row) => String(row.id));
    },
    async read(db, places, lock) {
      // `is true` keeps a planner without statistics from an index for the `where`, and all that it finds.
      const rows = await foreignRows(
        db,
        sql`
          select (${id})::text as id, (${named})::text as name,
            to_json(${columns.payload})::text as payload, (${epochMs(columns.runAt)})::float8 as run_at_ms,
            ${given(columns.priority, 'float8')} as priority,
            ${given(columns.attempts, 'float8')} as attempts,
            ${given(columns.maxAttempts, 'float8')} as max_attempts, ${given(columns.key, 'text')} as key,
            (${epochMs(columns.createdAt)})::float8 as created_at_ms,
            (extract(epoch from statement_timestamp()) * 1000)::float8 as now_ms
          from ${table}
          where ${ids(places)} and (${where}) is true${lock ? sql` for update skip locked` : sql``}`,
      );
      return inOrder(
        rows.map((row) => toReadJob(row, sign)),
        places,
      );
    },
    async remove(db, jobs) {
      const these = ids(jobs.map((job) => job.id));
      if (take === 'delete') {
        return (await foreignRows(db, sql`delete from ${table} where ${these} returning 1 as taken`)).length;
      }
      const taken = await foreignRows(
        db,
        sql`update ${table} set ${take} where ${these} returning 1 as taken`,
      );
      const [still] = await foreignRows(
        db,
        sql`select 1 as found from ${table} where ${these} and (${where}) limit 1`,
      );
      if (still === undefined) return taken.length;
      throw new Error(
        'importJobs: `where` of from.table still finds a row after `take`, so the row would then be ' +
          'imported again',
      );
    },
  };
}

function checked(options: JobTableOptions): JobTableOptions {
  const what = 'from.table';
  const { columns, where, name, first, take } = checkOptions(`${what}: options`, options, OPTIONS);
  checkOptions(`${what}: columns`, columns, COLUMNS);
  if (columns.id === undefined || columns.payload === undefined) {
    throw new TypeError(`${what}: columns must have an id and a payload`);
  }
  if (options.table === undefined || where === undefined) {
    throw new TypeError(`${what}: give the table and where, a condition for the rows that wait`);
  }
  if ((columns.name === undefined) === (name === undefined)) {
    throw new TypeError(`${what}: give either columns.name, or one name for all rows`);
  }
  if (name !== undefined) checkText(`${what}: name`, name, MAX_UNIQUE_KEY_BYTES);
  if (first !== undefined && first !== 'smaller' && first !== 'greater') {
    throw new TypeError(`${what}: first must be 'smaller' or 'greater', got ${shown(first)}`);
  }
  if (take !== undefined && take !== 'delete') checkObject(`${what}: take`, take);
  return options;
}

function toReadJob(row: RawRow, sign: 1 | -1): ReadJob {
  const nowMs = Number(row.now_ms);
  const runAtMs = row.run_at_ms === null ? nowMs : Number(row.run_at_ms);
  const attempts = Number(row.attempts ?? 0);
  const most = row.max_attempts === null ? undefined : Number(row.max_attempts);
  const priority = Number(row.priority ?? 0);
  return {
    id: String(row.id),
    name: String(row.name),
    data: row.payload === null ? null : JSON.parse(String(row.payload)),
    json: jsonOf(row.payload),
    priority,
    stepsBehind: Math.round(sign * priority),
    runAt: new Date(runAtMs),
    attempts,
    attemptsLeft: most === undefined ? undefined : most - attempts,
    createdAt: row.created_at_ms === null ? undefined : new Date(Number(row.created_at_ms)),
    key: textOrNothing(row.key),
    keyHolds: 'live',
    serial: undefined,
    unfit: most !== undefined && most <= attempts ? 'It has no attempts left' : undefined,
    state: foreignState(attempts, runAtMs > nowMs),
  };
}

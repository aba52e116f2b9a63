import { type SQL, sql } from 'drizzle-orm';
import type { NewJob } from '../job/new-job.ts';
import { jsonElements, jsonRows } from './json-rows.ts';

/** What of a job, beside its payload, may be the same for all jobs of an insert. */
interface Setting {
  /** Its column in a row of JSON. */
  readonly column: string;
  readonly type: 'text' | 'int2' | 'float8' | 'jsonb';
  readonly of: (job: NewJob) => string | number | null;
}

const QUEUE: Setting = { column: 'queue', type: 'text', of: (job) => job.queue };
const KIND: Setting = { column: 'kind', type: 'text', of: (job) => job.kind };
const PRIORITY: Setting = { column: 'priority', type: 'int2', of: (job) => job.priority };
const DELAY: Setting = { column: 'delay_ms', type: 'float8', of: (job) => job.delayMs };
const RUN_AT: Setting = { column: 'run_at_ms', type: 'float8', of: (job) => job.runAtMs };
const MAX_ATTEMPTS: Setting = { column: 'max_attempts', type: 'int2', of: (job) => job.maxAttempts };
const UNIQUE_KEY: Setting = { column: 'unique_key', type: 'text', of: (job) => job.uniqueKey };
const METADATA: Setting = { column: 'metadata', type: 'jsonb', of: (job) => job.metadata };

const SETTINGS = [QUEUE, KIND, PRIORITY, DELAY, RUN_AT, MAX_ATTEMPTS, UNIQUE_KEY, METADATA];

/**
 * Jobs as rows for an insert: the columns of `queue_jobs` that an enqueue sets, and `place`, the job's place in the input.
 *
 * A setting that all of them share is one parameter instead of a part of every row, so that of 1,000 jobs which differ in
 * their payloads alone, only the payloads are parsed. A lone job is parameters alone, with no JSON around it.
 */
export function jobRows(jobs: readonly NewJob[]): SQL {
  const [first] = jobs;
  if (first === undefined) throw new TypeError('jobRows needs a job');
  // Written out, because Drizzle takes much longer to build a text of parts within parts, and most enqueues are of one job.
  if (jobs.length === 1) {
    return sql`
      select ${first.queue}::text as queue, ${first.kind}::text as kind, ${first.payload}::text::jsonb as payload,
        ${first.priority}::int2 as priority,
        coalesce(to_timestamp(${first.runAtMs}::float8 / 1000), statement_timestamp() + ${first.delayMs}::float8 * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, ${first.maxAttempts}::int2 as max_attempts,
        ${first.uniqueKey}::text as unique_key, ${first.metadata}::text::jsonb as metadata, 1 as place`;
  }
  const varying = varyingSettings(first, jobs);
  const value = (setting: Setting) =>
    varying.includes(setting) ? sql.raw(`r.${setting.column}`) : parameter(setting, first);
  const { payload, rows } = payloads(jobs, varying);
  return sql`
      select ${value(QUEUE)} as queue, ${value(KIND)} as kind, ${payload} as payload, ${value(PRIORITY)} as priority,
        coalesce(to_timestamp(${value(RUN_AT)} / 1000), statement_timestamp() + ${value(DELAY)} * interval '1 millisecond') as run_at,
        statement_timestamp() as created_at, ${value(MAX_ATTEMPTS)} as max_attempts, ${value(UNIQUE_KEY)} as unique_key,
        ${value(METADATA)} as metadata, r.place from ${rows} as r`;
}

function varyingSettings(first: NewJob, jobs: readonly NewJob[]): Setting[] {
  // All at once first: most bulks differ in nothing, and asking for each setting takes several times as long.
  const same = jobs.every(
    (job) =>
      job.queue === first.queue &&
      job.kind === first.kind &&
      job.priority === first.priority &&
      job.delayMs === first.delayMs &&
      job.runAtMs === first.runAtMs &&
      job.maxAttempts === first.maxAttempts &&
      job.uniqueKey === first.uniqueKey &&
      job.metadata === first.metadata,
  );
  return same ? [] : SETTINGS.filter(({ of }) => jobs.some((job) => of(job) !== of(first)));
}

function parameter({ type, of }: Setting, job: NewJob): SQL {
  // Through text, or some drivers take the text for a JSON value and encode it a second time.
  return type === 'jsonb' ? sql`${of(job)}::text::jsonb` : sql`${of(job)}::${sql.raw(type)}`;
}

/** Where the payloads come from, with the settings that vary. */
function payloads(jobs: readonly NewJob[], varying: readonly Setting[]): { payload: SQL; rows: SQL } {
  if (varying.length === 0) {
    return { payload: sql`r.element`, rows: jsonElements(jobs.map(({ payload }) => payload)) };
  }
  const rows = jsonRows(
    jobs.map((job) => rowOf(job, varying)),
    ['payload jsonb', ...varying.map(({ column, type }) => `${column} ${type}`)].join(', '),
  );
  // In a record, the JSON null is no value.
  return { payload: sql`coalesce(r.payload, 'null'::jsonb)`, rows };
}

function rowOf(job: NewJob, varying: readonly Setting[]): string {
  const settings = varying.map(({ column, type, of }) => {
    const value = of(job);
    return `,"${column}":${type === 'jsonb' ? value : JSON.stringify(value)}`;
  });
  return `{"payload":${job.payload}${settings.join('')}}`;
}

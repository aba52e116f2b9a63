import { type SQL, sql } from 'drizzle-orm';
import { storedKeyOf } from '../job/key-rule.ts';
import type { NewJob } from '../job/new-job.ts';
import type { OwnColumn } from '../schema/own-columns.ts';
import { haveGroupColumns } from './grouped-jobs.ts';
import { jsonElements, jsonRows } from './json-rows.ts';
import { ownDefault, ownValue } from './own-values.ts';

/** A setting of a job, apart from its payload, that all jobs of an insert may share. */
interface Setting {
  readonly column: string;
  readonly type: 'text' | 'int2' | 'int4' | 'int8' | 'float8' | 'jsonb' | 'bool';
  readonly of: (job: NewJob) => string | number | boolean | null;
}

const QUEUE: Setting = { column: 'queue', type: 'text', of: (job) => job.queue };
const KIND: Setting = { column: 'kind', type: 'text', of: (job) => job.kind };
const PRIORITY: Setting = { column: 'priority', type: 'int2', of: (job) => job.priority };
const DELAY: Setting = { column: 'delay_ms', type: 'float8', of: (job) => job.delayMs };
const RUN_AT: Setting = { column: 'run_at_ms', type: 'float8', of: (job) => job.runAtMs };
const MAX_ATTEMPTS: Setting = { column: 'max_attempts', type: 'int2', of: (job) => job.maxAttempts };
const UNIQUE_KEY: Setting = { column: 'unique_key', type: 'text', of: (job) => job.uniqueKey };
const METADATA: Setting = { column: 'metadata', type: 'jsonb', of: (job) => job.metadata };
const GROUP: Setting = { column: 'group_key', type: 'text', of: (job) => job.group ?? null };
const COST: Setting = { column: 'weight', type: 'int2', of: (job) => job.cost ?? 1 };

const RULE_KEY: Setting = {
  column: 'rule_key',
  type: 'text',
  of: ({ rule }) => (rule === undefined ? null : storedKeyOf(rule)),
};

const BATCH: Setting = { column: 'batch_id', type: 'int8', of: (job) => job.batch ?? null };
const BLOCKERS: Setting = { column: 'blockers', type: 'int4', of: (job) => job.blockers ?? null };

const SETTINGS = [
  QUEUE,
  KIND,
  PRIORITY,
  DELAY,
  RUN_AT,
  MAX_ATTEMPTS,
  UNIQUE_KEY,
  METADATA,
  GROUP,
  COST,
  RULE_KEY,
  BATCH,
  BLOCKERS,
];

/** An own column that an insert sets, and its place among all own columns. */
export interface GivenColumn extends OwnColumn {
  readonly index: number;
}

/**
 * Jobs as rows for an insert: the columns of `queue_jobs` that an enqueue sets, `own_0` and so on for the
 * app's own columns, and `place`, the job's place in the input. Some columns are there only when needed:
 *
 * - `group_key` and `weight` if any job is in a group or has a cost,
 * - `batch_id` and `blockers` if any is in a batch or waits for one,
 * - `rule_key` if all have a rule for their key.
 *
 * A setting that all jobs share is one parameter instead of a part of every row: of 1,000 jobs that differ
 * only in their payloads, Postgres parses only the payloads.
 */
export function jobRows(jobs: readonly NewJob[], own: readonly GivenColumn[] = []): SQL {
  const [first] = jobs;
  if (first === undefined) throw new TypeError('jobRows: no job');
  const grouped = haveGroupColumns(jobs);
  const batched = haveBatchColumns(jobs);
  const ruled = first.rule !== undefined;
  const ownSettings = own.map(toOwnSetting);
  const varying = varyingSettings(first, jobs, ownSettings);
  const value = (setting: Setting) =>
    varying.includes(setting) ? sql.raw(`r.${setting.column}`) : parameter(setting, first);
  const { payload, rows } = payloads(jobs, varying);
  const due = runAt(value(RUN_AT), value(DELAY));
  // A job that waits for others until its deadline.
  const timed = jobs.some((job) => job.blockers && job.delayMs);
  const untimed = timed ? sql` and ${value(DELAY)} = 0` : sql``;
  return sql`
      select ${value(QUEUE)} as queue, ${value(KIND)} as kind, ${payload} as payload,
        ${value(PRIORITY)} as priority,
        ${
          batched ? sql`case when ${value(BLOCKERS)} > 0${untimed} then 'infinity' else ${due} end` : due
        } as run_at,
        ${NOW} as created_at, ${value(MAX_ATTEMPTS)} as max_attempts,
        ${value(UNIQUE_KEY)} as unique_key,
        ${value(METADATA)} as metadata${
          grouped ? sql`, ${value(GROUP)} as group_key, ${value(COST)} as weight` : sql``
        }${
          batched ? sql`, ${value(BATCH)} as batch_id, ${value(BLOCKERS)} as blockers` : sql``
        }${ruled ? sql`, ${value(RULE_KEY)} as rule_key` : sql``}${sql.join(
          ownSettings.map(({ column, text, leftOut }) => {
            const given = ownValue(column, value(text));
            const anyLeftOut = varying.includes(leftOut);
            const chosen = anyLeftOut
              ? sql`case when ${value(leftOut)} then ${ownDefault(column)} else ${given} end`
              : given;
            return sql`, ${chosen} as ${sql.raw(text.column)}`;
          }),
        )}, r.place from ${rows} as r`;
}

/**
 * One job as the values of an insert, in the order of the columns that {@link jobRows} names: Postgres plans
 * a row of values in two thirds of the time that a select takes, and takes their types from the columns.
 */
export function jobValues(job: NewJob, own: readonly GivenColumn[] = []): SQL {
  const grouped = haveGroupColumns([job]) ? sql`, ${GROUP.of(job)}, ${COST.of(job)}` : sql``;
  const ofApp = own.map(
    (column) => sql`, ${ownValue(column, sql`${job.own?.[column.index] ?? null}::text`)}`,
  );
  const batch = haveBatchColumns([job]) ? sql`, ${BATCH.of(job)}, ${BLOCKERS.of(job)}` : sql``;
  return sql`${job.queue}, ${job.kind}, ${job.payload}::text::jsonb, ${job.priority}, ${dueAt(job)}, ${NOW},
      ${job.maxAttempts}, ${job.uniqueKey}, ${job.metadata}::text::jsonb${grouped}${batch}${sql.join(ofApp)}`;
}

/** Most are due at once, and Postgres plans that in less time. */
function dueAt(job: NewJob): SQL {
  if (job.runAtMs !== null || job.delayMs > 0) return runAt(parameter(RUN_AT, job), parameter(DELAY, job));
  return job.blockers === undefined ? NOW : sql`'infinity'::timestamptz`;
}

function runAt(runAtMs: SQL, delayMs: SQL): SQL {
  return sql`coalesce(to_timestamp(${runAtMs} / 1000), ${NOW} + ${delayMs} * interval '1 millisecond')`;
}

/** Whether some of the jobs are in a batch, or wait for one. */
export function haveBatchColumns(jobs: readonly NewJob[]): boolean {
  return jobs.some((job) => job.batch !== undefined || job.blockers !== undefined);
}

const NOW = sql.raw('statement_timestamp()');

interface OwnSetting {
  readonly column: GivenColumn;
  readonly text: Setting;
  /** Whether its default applies; never for all jobs, or the insert would not set the column. */
  readonly leftOut: Setting;
}

function toOwnSetting(column: GivenColumn): OwnSetting {
  const { index } = column;
  return {
    column,
    text: { column: `own_${index}`, type: 'text', of: (job) => job.own?.[index] ?? null },
    leftOut: { column: `own_${index}_left_out`, type: 'bool', of: (job) => job.own?.[index] === undefined },
  };
}

function varyingSettings(first: NewJob, jobs: readonly NewJob[], own: readonly OwnSetting[]): Setting[] {
  const ownSettings = own.flatMap(({ text, leftOut }) => [text, leftOut]);
  // All settings at once first: most bulks share them all, and asking one by one takes several times as long.
  const same = jobs.every(
    (job) =>
      job.queue === first.queue &&
      job.kind === first.kind &&
      job.priority === first.priority &&
      job.delayMs === first.delayMs &&
      job.runAtMs === first.runAtMs &&
      job.maxAttempts === first.maxAttempts &&
      job.uniqueKey === first.uniqueKey &&
      job.metadata === first.metadata &&
      job.group === first.group &&
      job.cost === first.cost &&
      job.rule?.key === first.rule?.key &&
      job.batch === first.batch &&
      job.blockers === first.blockers,
  );
  const settings = same ? ownSettings : [...SETTINGS, ...ownSettings];
  return settings.filter(({ of }) => jobs.some((job) => of(job) !== of(first)));
}

function parameter({ type, of }: Setting, job: NewJob): SQL {
  // Through text: with `::jsonb` alone some drivers encode the text a second time.
  return type === 'jsonb' ? sql`${of(job)}::text::jsonb` : sql`${of(job)}::${sql.raw(type)}`;
}

/** The payloads, with the settings that vary. */
function payloads(jobs: readonly NewJob[], varying: readonly Setting[]): { payload: SQL; rows: SQL } {
  if (varying.length === 0) {
    return { payload: sql`r.element`, rows: jsonElements(jobs.map(({ payload }) => payload)) };
  }
  const rows = jsonRows(
    jobs.map((job) => rowOf(job, varying)),
    ['payload jsonb', ...varying.map(({ column, type }) => `${column} ${type}`)].join(', '),
  );
  // A record reads the JSON null as an SQL null.
  return { payload: sql`coalesce(r.payload, 'null'::jsonb)`, rows };
}

function rowOf(job: NewJob, varying: readonly Setting[]): string {
  const settings = varying.map(
    ({ column, type, of }) => `,"${column}":${type === 'jsonb' ? of(job) : JSON.stringify(of(job))}`,
  );
  return `{"payload":${job.payload}${settings.join('')}}`;
}

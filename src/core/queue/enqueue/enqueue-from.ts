import { Column, is, SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { QueueError } from '../../../errors.ts';
import type { JobDefinition, PayloadInput } from '../../job/definition.ts';
import { ENQUEUE_OPTIONS } from '../../job/enqueue-options.ts';
import { goAround } from '../../job/go-around.ts';
import { checkGroup } from '../../job/group.ts';
import { checkOptions } from '../../job/known-options.ts';
import {
  checkDate,
  checkDurationMs,
  checkInteger,
  checkObject,
  checkText,
  DEFAULT_MAX_PAYLOAD_BYTES,
  MAX_ATTEMPTS,
  MAX_COST,
  MAX_NAME_BYTES,
  MAX_PRIORITY,
} from '../../job/limits.ts';
import { metadataToStore } from '../../job/new-job.ts';
import { insertSelectedJobs, type SelectedJobs } from '../../queries/enqueue/insert-selected-jobs.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { OwnColumn } from '../../schema/own-columns.ts';
import { checkOpen, type Executor } from '../../sql/executor.ts';
import { hasCosts, notGrouped } from '../../sql/grouped-jobs.ts';
import { checkNotNeeded, ownValue, textOf, valueOrDefault } from '../../sql/own-values.ts';
import { declaresGroups } from '../../sql/statement-context.ts';
import type { WakeUp } from '../../sql/wake-up.ts';
import type { Around, JobToEnqueue } from './around.ts';
import { type EnqueueSettings, NAME } from './enqueue-around.ts';

/** A Drizzle select whose rows are `TRow`, such as `db.select({ orderId: orders.id }).from(orders)`. */
export interface SelectOf<TRow> extends PromiseLike<TRow[]> {
  as(alias: string): SQLWrapper;
}

/** What a row must be: the payload, or anything where the definition has none. */
export type SelectedRow<TJob extends JobDefinition> = TJob['payload'] extends undefined
  ? unknown
  : PayloadInput<TJob>;

/** A value for every job, or an expression over the selected row. */
export type PerRow<TFields, TValue> = TValue | ((row: TFields) => SQLWrapper);

/** What {@link Queue.enqueueFrom} may override; what may differ by row, also as an expression. */
export interface EnqueueFromOptions<TFields> {
  /** Milliseconds until the jobs are due, 0 to one century. Not together with `runAt`. @default 0 */
  delayMs?: number | undefined;
  /** When the jobs are due: a time, or an expression of type `timestamptz`, neither null nor `infinity`. */
  runAt?: PerRow<TFields, Date> | undefined;
  /** 0–9, smaller first: a number, or an expression. @default the definition's */
  priority?: PerRow<TFields, number> | undefined;
  /** @default the definition's */
  maxAttempts?: number | undefined;
  /** @default the definition's */
  queue?: string | undefined;
  /** An expression of type `text`, at most 2,000 bytes; rows where it is null have no unique key. */
  uniqueKey?: ((row: TFields) => SQLWrapper) | undefined;
  /** A JSON object, the same for every job. @default {} */
  metadata?: Readonly<Record<string, unknown>> | undefined;
  /**
   * The group of every job, in a queue with groups: a text, or an expression of type `text`; where that is
   * null or empty, the job has none of its own. Needed where the definition has a function for it: it cannot
   * be asked about rows that stay in the database.
   */
  group?: PerRow<TFields, string> | undefined;
  /** What every job counts for in rates: a number, or an expression, taken as the nearest of 1–10,000. */
  cost?: PerRow<TFields, number> | undefined;
}

/** The caller does not get the ids of these jobs, so it cannot wait for them. */
const OTHERS = ['debounce', 'throttle', 'replace', 'unique', 'awaited'];
const OPTIONS = new Set([...ENQUEUE_OPTIONS].filter((name) => !OTHERS.includes(name)));

/** The options of {@link Queue.enqueueFrom}, with values or expressions for the app's own columns. */
export type EnqueueFromArguments<TFields, TOwn = unknown> =
  Record<never, never> extends TOwn
    ? [options?: EnqueueFromOptions<TFields> & { [K in keyof TOwn]: PerRow<TFields, TOwn[K]> }]
    : [options: EnqueueFromOptions<TFields> & { [K in keyof TOwn]: PerRow<TFields, TOwn[K]> }];

/** Inserts the selected jobs, all checked, and notifies their queue's workers as `wakeUps` allows. */
export async function enqueueFrom<TSelect extends SelectOf<unknown>>(
  db: Executor,
  { tables, own, wakeUps, maxPayloadBytes, around }: EnqueueSettings,
  job: JobDefinition,
  select: TSelect,
  options: EnqueueFromOptions<ReturnType<TSelect['as']>> | undefined,
): Promise<{ enqueued: number; duplicates: number }> {
  const jobs = selectedJobs(job, select, options, own, maxPayloadBytes);
  checkGrouping(tables, jobs);
  if (around === undefined) return await insert(jobs);
  const { kind, queue } = jobs;
  const shown = { kind, queue, priority: undefined, metadata: { ...options?.metadata } };
  return await insertFromAround(around, shown, (metadata) =>
    insert({ ...jobs, metadata: metadataOf(kind, metadata, maxPayloadBytes) }),
  );

  async function insert(jobs: SelectedJobs): Promise<{ enqueued: number; duplicates: number }> {
    checkOpen('enqueueFrom', db); // As in enqueueJobs.
    const send = (wakeUp?: WakeUp) => insertSelectedJobs(db, tables, jobs, wakeUp);
    const { enqueued, duplicates } =
      wakeUps === undefined ? await send() : await wakeUps.allow(db, jobs.mayBeDue ? [jobs.queue] : [], send);
    return { enqueued, duplicates };
  }
}

/** The insert's expressions for a select and its options, all checked. */
export function selectedJobs<TSelect extends SelectOf<unknown>>(
  job: JobDefinition,
  select: TSelect,
  options: EnqueueFromOptions<ReturnType<TSelect['as']>> = {},
  own: readonly OwnColumn[] = [],
  maxMetadataBytes: number = DEFAULT_MAX_PAYLOAD_BYTES,
): SelectedJobs {
  const what = (option: string) => `enqueueFrom('${job.kind}'): ${option}`;
  checkObject(what('options'), options);
  if (typeof select?.as !== 'function') throw new TypeError(`${what('the select')} ${NO_SELECT}`);
  if (options.uniqueKey !== undefined && typeof options.uniqueKey !== 'function') {
    throw new TypeError(
      `${what('uniqueKey')} must be a function of the row, which returns an SQL expression`,
    );
  }
  for (const option of OTHERS) {
    if (Reflect.get(options, option) !== undefined) {
      throw new TypeError(`${what(option)} is not an option of enqueueFrom; use enqueueMany`);
    }
  }
  checkOptions(what('options'), options, OPTIONS, own);
  if (options.delayMs !== undefined && options.runAt !== undefined) {
    throw new TypeError(`${what('delayMs and runAt')} cannot be combined`);
  }
  const source = select.as('selected');
  // `as` returned the alias's fields; TypeScript loses a method's return type through its own generic.
  const row = source as ReturnType<TSelect['as']>;
  const delayMs = checkDurationMs(what('delayMs'), options.delayMs ?? 0);
  const { runAt, priority = job.priority } = options;
  return {
    source,
    mayBeDue: runAt !== undefined || delayMs === 0,
    queue: checkText(what('queue'), options.queue ?? job.queue, MAX_NAME_BYTES),
    kind: job.kind,
    maxAttempts: checkInteger(what('maxAttempts'), options.maxAttempts ?? job.maxAttempts, 1, MAX_ATTEMPTS),
    payload: job.payload === undefined ? sql`'null'::jsonb` : payloadOf(source, what('the select')),
    priority:
      typeof priority === 'function'
        ? sql`${priority(row)}`
        : sql`${checkInteger(what('priority'), priority, 0, MAX_PRIORITY)}`,
    runAt:
      typeof runAt === 'function'
        ? // A job that waits has this time, and nothing would ever wake this one. The column refuses null.
          sql`nullif((${runAt(row)})::timestamptz, 'infinity')`
        : runAt === undefined
          ? sql`statement_timestamp() + ${delayMs}::float8 * interval '1 millisecond'`
          : sql`${checkDate(what('runAt'), runAt).toISOString()}`,
    uniqueKey: options.uniqueKey === undefined ? undefined : sql`${options.uniqueKey(row)}`,
    metadata: metadataOf(job.kind, options.metadata, maxMetadataBytes),
    group: groupOf(job, options.group, row, what('group')),
    cost: costOf(job, options.cost, row, what('cost')),
    own: own.flatMap((column) =>
      ownSelected(column, Reflect.get(options, column.key), row, what('the options')),
    ),
  };
}

/** @throws TypeError when the jobs have groups, and their queue has none, or costs, and it has no rates */
function checkGrouping(tables: QueueTables, { queue, kind, group, cost }: SelectedJobs): void {
  const isGrouped = declaresGroups(tables, queue);
  if (group !== undefined && !isGrouped) throw notGrouped(`enqueueFrom('${kind}')`, 'group', queue);
  if (cost !== undefined && !hasCosts(tables, queue))
    throw notGrouped(`enqueueFrom('${kind}')`, 'cost', queue);
}

function groupOf<TFields>(
  job: JobDefinition,
  group: PerRow<TFields, string> | undefined,
  row: TFields,
  what: string,
): SQL | undefined {
  if (typeof group === 'function') return sql`nullif((${group(row)})::text, '')`;
  if (group !== undefined) return sql`${checkGroup(what, group)}::text`;
  if (job.group !== undefined) throw neededHere(what, 'group');
  return undefined;
}

function costOf<TFields>(
  job: JobDefinition,
  cost: PerRow<TFields, number> | undefined,
  row: TFields,
  what: string,
): SQL | undefined {
  // A cost below 1 would let any number of jobs through a rate.
  if (typeof cost === 'function')
    return sql`least(greatest(coalesce((${cost(row)})::int8, 1), 1), ${MAX_COST}::int8)`;
  if (cost !== undefined) return sql`${checkInteger(what, cost, 1, MAX_COST)}`;
  if (job.cost !== undefined) throw neededHere(what, 'cost');
  return undefined;
}

function neededHere(what: string, option: 'group' | 'cost'): TypeError {
  return new TypeError(
    `${what} must be given: the definition's ${option} function cannot be called for rows that stay ` +
      `in the database. Write it as an expression: \`${option}: (row) => …\``,
  );
}

function metadataOf(
  kind: string,
  metadata: Readonly<Record<string, unknown>> | undefined,
  maxBytes: number,
): SQL {
  return sql`${metadata === undefined ? '{}' : metadataToStore(kind, metadata, maxBytes)}::text::jsonb`;
}

/** An own column and its expression; nothing where its default is to apply. */
function ownSelected(
  column: OwnColumn,
  given: unknown,
  row: unknown,
  what: string,
): NonNullable<SelectedJobs['own']> {
  // The user's own expression over the row; PostgreSQL says whether its type fits the column.
  if (typeof given === 'function') return [{ column, value: sql`(${given(row)})` }];
  const value = valueOrDefault(column, given);
  if (value !== undefined)
    return [{ column, value: ownValue(column, sql`${textOf(column, value, what)}::text`) }];
  checkNotNeeded(column, what);
  return [];
}

const NO_SELECT = 'must be a Drizzle select, such as db.select({ … }).from(…)';

/** A row as the payload: an object with the select's own keys, nested where the select is. */
function payloadOf(source: SQLWrapper, what: string): SQL {
  const described = source as { _?: { selectedFields?: Record<string, unknown> } };
  const fields = described._?.selectedFields;
  if (fields === undefined) throw new TypeError(`${what} ${NO_SELECT}`);
  return objectOf(fields, source, what);
}

function objectOf(fields: Readonly<Record<string, unknown>>, values: object, what: string): SQL {
  const pairs = Object.keys(fields).map((key) => {
    const value: unknown = Reflect.get(values, key);
    if (is(value, Column) || is(value, SQL) || is(value, SQL.Aliased)) return sql`${key}::text, ${value}`;
    if (typeof value === 'object' && value !== null) {
      return sql`${key}::text, ${objectOf(value as Record<string, unknown>, value, what)}`;
    }
    throw new TypeError(`${what} has a field '${key}' that is neither a column nor an SQL expression`);
  });
  // A function takes at most 100 arguments.
  const objects: SQL[] = [];
  for (let from = 0; from < pairs.length; from += 50) {
    objects.push(sql`jsonb_build_object(${sql.join(pairs.slice(from, from + 50), sql`, `)})`);
  }
  return objects.length === 1 ? sql`${objects[0]}` : sql`(${sql.join(objects, sql` || `)})`;
}

/** Inserts the rows of a select inside `around.enqueue`, as one job that stands for all of them. */
async function insertFromAround<T>(
  around: NonNullable<Around['enqueue']>,
  job: Pick<JobToEnqueue, 'kind' | 'queue' | 'priority' | 'metadata'>,
  insert: (metadata: Readonly<Record<string, unknown>>) => Promise<T>,
): Promise<T> {
  const shown = Object.freeze({ ...job, uniqueKey: null, payload: undefined });
  let answer: { readonly value: T } | undefined;
  await goAround({
    name: NAME,
    around,
    argument: Object.freeze([shown]),
    step: async () => {
      answer = { value: await insert(shown.metadata) };
      return undefined;
    },
  });
  if (answer === undefined) throw new QueueError('The insert did not answer');
  return answer.value;
}

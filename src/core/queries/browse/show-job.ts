import { type SQL, sql } from 'drizzle-orm';
import type { AttemptError } from '../../schema/attempt-error.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { type JobLine, lineColumns, toJobLine } from '../../sql/job-line.ts';
import { inScope, type JobScope } from '../../sql/job-scope.ts';

/** A JSON value as Postgres writes it. */
export interface JsonText {
  readonly text: string;
  /** Characters of the whole text. */
  readonly length: number;
}

/** All that a person sees of one job. */
export interface ShownJob extends JobLine {
  /** `null` for one that is not kept, which a stored `null` is not. */
  readonly payloadText: JsonText | null;
  readonly metadataText: JsonText;
  /** `null` for none, which a stored `null` is not. */
  readonly outputText: JsonText | null;
  readonly progressText: JsonText | null;
  readonly errors: readonly AttemptError[];
  readonly cancelReason: string | null;
}

export interface JobToShow {
  readonly id: number;
  readonly scope: JobScope;
  /** The most characters of each value. */
  readonly cut: number;
}

/**
 * One job by id, live or finished, with its values as texts: numbers that JavaScript would round stay as
 * they are. `undefined` when there is none in the scope.
 *
 * **Under concurrency.** One statement, so one snapshot: a job that ends meanwhile is found once.
 */
export async function showJob(
  db: Executor,
  tables: QueueTables,
  show: JobToShow,
): Promise<ShownJob | undefined> {
  const [row] = await queryRows(db, tables, showJobQuery(tables, show));
  if (row === undefined) return undefined;
  const textOf = (name: string): JsonText | null => {
    const text = row[`${name}_text`];
    return typeof text === 'string' ? { text, length: Number(row[`${name}_length`]) } : null;
  };
  const nothing: JsonText = { text: 'null', length: 4 };
  return {
    ...toJobLine(row, ownColumnsOf(tables.queueJobs)),
    payloadText: textOf('payload'),
    metadataText: textOf('metadata') ?? nothing,
    outputText: textOf('output'),
    progressText: textOf('progress'),
    // Only this library writes the column, in this shape.
    errors: row.errors as AttemptError[],
    cancelReason: row.cancel_reason === null ? null : String(row.cancel_reason),
  };
}

/** @crossesQueues finds a job by its id: the caller does not know the queue */
export function showJobQuery(tables: QueueTables, { id, scope, cut }: JobToShow): SQL {
  const { queueJobs, queueResults } = tables;
  const text = (column: string, name: string) => sql`
        left(${sql.raw(column)}, ${cut}) as ${sql.raw(`${name}_text`)},
        length(${sql.raw(column)})::float8 as ${sql.raw(`${name}_length`)}`;
  const where = (alias: 'j' | 'r', column: string) =>
    sql.join([sql`${sql.raw(column)} = ${id}::int8`, ...inScope(scope, alias)], sql` and `);
  const pretty = (alias: 'j' | 'r') =>
    sql`${text(`jsonb_pretty(${alias}.payload)`, 'payload')},${text(
      `jsonb_pretty(${alias}.metadata)`,
      'metadata',
    )}`;
  return sql`
    select ${lineColumns(tables, 'j', 0)}, j.errors, j.cancel_reason,${pretty('j')},
      ${text('null::text', 'output')},${text('jsonb_pretty(j.progress)', 'progress')}
    from ${queueJobs} as j where ${where('j', 'j.id')}
    union all
    select ${lineColumns(tables, 'r', 0)}, r.errors, null::text,${pretty('r')},
      ${text('jsonb_pretty(r.output)', 'output')},${text('null::text', 'progress')}
    from ${queueResults} as r where ${where('r', 'r.job_id')}
    limit 1`;
}

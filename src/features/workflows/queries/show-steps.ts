import { type SQL, sql } from 'drizzle-orm';
import { dateOf, epochMs } from '../../../core/sql/epoch-ms.ts';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import type { StepErrorRecord, StepKind } from '../schema/queue-steps.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';
import type { StepRecord } from './find-steps.ts';

/** A step as a person sees it: its output is a text. */
export interface ShownStep extends Omit<StepRecord, 'output'> {
  /**
   * Its beginning as Postgres writes it, and how many characters the whole has; `null` for none, which a
   * stored `null` is not.
   */
  readonly outputText: { readonly text: string; readonly length: number } | null;
}

/** The newest steps of a job, in the order in which they began, and how many there are. */
export interface ShownSteps {
  readonly steps: readonly ShownStep[];
  readonly count: number;
}

export interface StepsToShow {
  readonly id: number;
  readonly queue: string;
  /** Only the step with this name. @default undefined all */
  readonly name?: string | undefined;
  /** The most characters of each output. */
  readonly cut: number;
  readonly limit: number;
}

/**
 * The newest steps of a job with their outputs as texts: numbers that JavaScript would round stay as they
 * are. It reads all steps of the job, and the outputs of those that it returns.
 *
 * **Under concurrency.** A plain read, which waits for no lock.
 */
export async function showSteps(
  db: Runner,
  tables: TablesOfWorkflows,
  show: StepsToShow,
): Promise<ShownSteps> {
  const rows = await queryRows(db, tables, showStepsQuery(tables, show), { entry: WORKFLOWS_ENTRY });
  const steps = rows.map((row) => ({
    name: String(row.name),
    // The two columns are written by this library alone.
    kind: row.kind as StepKind,
    signal: row.signal === null ? null : String(row.signal),
    outputText:
      typeof row.output_text === 'string'
        ? { text: row.output_text, length: Number(row.output_length) }
        : null,
    error: row.error as StepErrorRecord | null,
    attempts: Number(row.attempts),
    until: row.until === null ? null : dateOf(row.until),
    startedAt: dateOf(row.started_at),
    endedAt: row.ended_at === null ? null : dateOf(row.ended_at),
  }));
  return { steps, count: Number(rows[0]?.count ?? 0) };
}

export function showStepsQuery(
  { queueSteps }: TablesOfWorkflows,
  { id, queue, name, cut, limit }: StepsToShow,
): SQL {
  const named = name === undefined ? sql`` : sql` and s.name = ${name}`;
  return sql`
    select s.name, s.kind, s.signal, s.error, s.attempts, left(o.text, ${cut}::int4) as output_text,
      length(o.text) as output_length, s.count::float8 as count, ${epochMs('s.until')} as until,
      ${epochMs('s.started_at')} as started_at,
      ${epochMs(`case when s.kind = 'sleep' and s.until <= statement_timestamp() then s.until
        else s.ended_at end`)} as ended_at
    from (
      select s.*, count(*) over () as count from ${queueSteps} as s
      where s.job_id = ${id}::int8 and s.queue = ${queue}${named}
      order by s.started_at desc, s.name desc
      limit ${limit}::int4
    ) as s
    cross join lateral (select jsonb_pretty(s.output) as text) as o
    order by s.started_at, s.name`;
}

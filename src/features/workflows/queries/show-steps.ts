import { type SQL, sql } from 'drizzle-orm';
import { dateOf, epochMs } from '../../../core/sql/epoch-ms.ts';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import type { StepErrorRecord, StepKind } from '../schema/queue-steps.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';
import type { StepRecord } from './find-steps.ts';

/** The jobs that a step has enqueued. */
export interface ShownChildren {
  /** The first ten. */
  readonly ids: readonly number[];
  readonly count: number;
  /** How many have ended, as far as it is counted; `null` for members of a flow, which are counted there. */
  readonly ended: number | null;
  /** How many were discarded or cancelled. */
  readonly failed: number;
  /** Whether their end, or the first failure, makes the job due. */
  readonly awaited: boolean;
}

/** A step as a person sees it: its output is a text. */
export interface ShownStep extends Omit<StepRecord, 'output'> {
  /**
   * Its beginning as Postgres writes it, and how many characters the whole has; `null` for none, which a
   * stored `null` is not.
   */
  readonly outputText: { readonly text: string; readonly length: number } | null;
  /** `null` where it has enqueued none. */
  readonly children: ShownChildren | null;
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
 * are. It reads all steps of the job, and the outputs and children's batches of those that it returns. What a
 * wait for children waits for is not in its own row: it is what the batches say.
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
    children:
      typeof row.child_ids === 'string'
        ? {
            // The step that has enqueued them has written their ids.
            ids: JSON.parse(row.child_ids) as number[],
            count: Number(row.children),
            ended: row.ended === null ? null : Number(row.ended),
            failed: Number(row.failed ?? 0),
            awaited: row.awaited === true,
          }
        : null,
    attempts: Number(row.attempts),
    until: row.until === null ? null : dateOf(row.until),
    startedAt: dateOf(row.started_at),
    endedAt: row.ended_at === null ? null : dateOf(row.ended_at),
  }));
  return { steps, count: Number(rows[0]?.count ?? 0) };
}

/** Waits are read by their batch. `is true` keeps the planner off the index by jobs, once for each step. */
export function showStepsQuery(
  { queueSteps, queueBatches, queueWaits }: TablesOfWorkflows,
  { id, queue, name, cut, limit }: StepsToShow,
): SQL {
  const named = name === undefined ? sql`` : sql` and s.name = ${name}`;
  return sql`
    select s.name, s.kind, s.signal, s.error, s.attempts, left(o.text, ${cut}::int4) as output_text,
      length(o.text) as output_length, s.count::float8 as count, ${epochMs('s.until')} as until,
      ${epochMs('s.started_at')} as started_at,
      ${epochMs(`case when s.kind = 'sleep' and s.until <= statement_timestamp() then s.until
        else s.ended_at end`)} as ended_at,
      jsonb_path_query_array(o.enqueued, '$.ids[0 to 9]')::text as child_ids,
      jsonb_array_length(o.enqueued -> 'ids') as children, b.ended, b.failed, b.awaited
    from (
      select s.*, count(*) over () as count from ${queueSteps} as s
      where s.job_id = ${id}::int8 and s.queue = ${queue}${named}
      order by s.started_at desc, s.name desc
      limit ${limit}::int4
    ) as s
    cross join lateral (
      select jsonb_pretty(s.output) as text, case when s.kind = 'enqueue' then s.output end as enqueued
    ) as o
    left join lateral (
      select (b.total - b.pending)::float8 as ended, b.failed::float8 as failed,
        b.waiting is not null and b.ended_at is null as awaited
      from ${queueWaits} as w join ${queueBatches} as b on b.id = w.batch_id
      where w.batch_id = (o.enqueued ->> 'batch')::int8
        and (w.job_id = s.job_id and w.queue = s.queue) is true
        and w.policy in ('parent', 'detached', 'forked')
    ) as b on true
    order by s.started_at, s.name`;
}

import { type SQL, sql } from 'drizzle-orm';
import { dateOf, epochMs } from '../../../core/sql/epoch-ms.ts';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { arrayText } from '../../../core/sql/fence.ts';
import type { StepErrorRecord, StepKind } from '../schema/queue-steps.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/** A step of a job, as it is recorded. */
export interface StepRecord {
  readonly name: string;
  readonly kind: StepKind;
  /** The signal that it waits for, or has waited for; `null` for other steps. */
  readonly signal: string | null;
  /** `undefined` for a step without an output, and for a signal that did not come in time. */
  readonly output: unknown;
  /** What its last attempt has thrown, if that failed. */
  readonly error: StepErrorRecord | null;
  /** How often it was tried. */
  readonly attempts: number;
  /**
   * When it waits no longer, by the database's clock; `null` where it waits without a limit, or not at all.
   * A limit that a deploy has taken away since stays here, and does not count.
   */
  readonly until: Date | null;
  readonly startedAt: Date;
  /** `null` while it waits, or is to be tried again. That of a sleep is its `until`, once that has passed. */
  readonly endedAt: Date | null;
}

/** A step as an attempt reads it. */
export interface FoundStep extends StepRecord {
  /** In how many milliseconds it waits no longer; `undefined` where it has no `until`. */
  readonly leftMs: number | undefined;
  /** What an observer has left with it. */
  readonly trace: string | null;
}

/** Whose steps are wanted. */
export interface JobsWithSteps {
  /** `undefined`: a reader that knows only ids. */
  readonly queue: string | undefined;
  readonly ids: readonly number[];
}

/**
 * The steps of jobs, by their ids; those of each in the order in which they began.
 *
 * **Under concurrency.** A plain read, which waits for no lock.
 */
export async function findSteps(
  db: Runner,
  tables: TablesOfWorkflows,
  jobs: JobsWithSteps,
): Promise<Map<number, FoundStep[]>> {
  const found = new Map(jobs.ids.map((id): [number, FoundStep[]] => [id, []]));
  for (const row of await queryRows(db, tables, findStepsQuery(tables, jobs), { entry: WORKFLOWS_ENTRY })) {
    found.get(Number(row.job_id))?.push(toStep(row));
  }
  return found;
}

/** The same of one job. */
export async function findStepsOfOne(
  db: Runner,
  tables: TablesOfWorkflows,
  { id, queue }: { readonly id: number; readonly queue: string | undefined },
): Promise<FoundStep[]> {
  return (await findSteps(db, tables, { queue, ids: [id] })).get(id) ?? [];
}

function toStep(row: Readonly<Record<string, unknown>>): FoundStep {
  return {
    name: String(row.name),
    // The two columns are written by this library alone.
    kind: row.kind as StepKind,
    signal: row.signal === null ? null : String(row.signal),
    output: row.has_output === true ? row.output : undefined,
    error: row.error as StepErrorRecord | null,
    attempts: Number(row.attempts),
    until: row.until === null ? null : dateOf(row.until),
    leftMs: row.left_ms === null ? undefined : Number(row.left_ms),
    trace: row.trace === null ? null : String(row.trace),
    startedAt: dateOf(row.started_at),
    endedAt: row.ended_at === null ? null : dateOf(row.ended_at),
  };
}

export function findStepsQuery({ queueSteps }: TablesOfWorkflows, { queue, ids }: JobsWithSteps): SQL {
  const inQueue = queue === undefined ? sql`` : sql` and s.queue = ${queue}`;
  return sql`
    select s.job_id, s.name, s.kind, s.signal, s.output, s.output is not null as has_output, s.error,
      s.attempts, s.trace, ${epochMs('s.until')} as until, ${epochMs('s.started_at')} as started_at,
      ${epochMs('s.ended_at')} as ended_at,
      extract(epoch from s.until - statement_timestamp())::float8 * 1000 as left_ms
    from ${queueSteps} as s
    where s.job_id = any(${arrayText(ids)}::text::int8[])${inQueue}
    order by s.started_at, s.name`;
}

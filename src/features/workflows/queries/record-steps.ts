import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type RawRow, type Runner } from '../../../core/sql/executor.ts';
import { type HeldJob, type Holder, idsAndFences, stillHeld } from '../../../core/sql/fence.ts';
import { planAnew } from '../../../core/sql/plan-anew.ts';
import { lockPatience, type RowLocks } from '../../../core/sql/row-locks.ts';
import type { StepErrorRecord, StepKind } from '../schema/queue-steps.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';

/** What is to be recorded of a step of a held job. */
export interface StepToRecord extends HeldJob {
  readonly name: string;
  readonly kind: StepKind;
  /** JSON text; `undefined`: it has none. */
  readonly output?: string | undefined;
  readonly error?: StepErrorRecord | undefined;
  readonly attempts?: number | undefined;
  /** In how many milliseconds it waits no longer. */
  readonly delayMs?: number | undefined;
  /** When it waits no longer; with `delayMs`, what comes first. */
  readonly until?: Date | undefined;
  /** What an observer leaves with it, for the attempt after it. */
  readonly trace?: string | undefined;
  /** How long it has taken so far, in milliseconds. */
  readonly tookMs: number;
  /** Whether it is over, so that it is not done again. */
  readonly ended: boolean;
}

/** What is recorded of a step: in how many milliseconds it waits no longer, if it waits. */
export interface RecordedStep {
  readonly leftMs: number | undefined;
}

/**
 * Records steps of held jobs of one queue. Returns those that are recorded, by {@link stepKey}; of the others
 * this worker no longer held the jobs.
 *
 * **Under concurrency.** Fenced as `finishJobs` is: it locks the rows of the jobs, so a takeover comes
 * before, and nothing is recorded, or after, and the next attempt reads the steps. A repetition after a lost
 * answer does nothing more. A step that has ended stays as it is.
 *
 * @param locks `wait` in a transaction of the app's, `briefly` elsewhere: see `lockPatience`
 */
export async function recordSteps(
  db: Runner,
  tables: TablesOfWorkflows,
  holder: Holder,
  steps: readonly StepToRecord[],
  locks: Exclude<RowLocks, 'skip'>,
): Promise<Map<string, RecordedStep>> {
  const query = recordStepsQuery(tables, holder, steps, locks);
  const rows = await queryRows(db, tables, query, { entry: WORKFLOWS_ENTRY });
  return toRecorded(rows);
}

function toRecorded(rows: readonly RawRow[]): Map<string, RecordedStep> {
  return new Map(
    rows.map((row) => [keyOf(row), { leftMs: row.left_ms === null ? undefined : Number(row.left_ms) }]),
  );
}

function keyOf(row: RawRow): string {
  return stepKey({ id: Number(row.job_id), fence: Number(row.fence), name: String(row.name) });
}

/**
 * The same of those jobs whose rows no other transaction has locked. Of the others, `locked` names the steps
 * of jobs that were still held, so that the caller can try again.
 *
 * **Under concurrency.** As {@link recordSteps}, except that it waits for no job's row. A row whose lock was
 * just released may still be named as locked.
 */
export async function recordFreeSteps(
  db: Runner,
  tables: TablesOfWorkflows,
  holder: Holder,
  steps: readonly StepToRecord[],
): Promise<{ readonly recorded: Map<string, RecordedStep>; readonly locked: Set<string> }> {
  const query = recordStepsQuery(tables, holder, steps, 'skip');
  const rows = await queryRows(db, tables, query, { entry: WORKFLOWS_ENTRY });
  return {
    recorded: toRecorded(rows.filter(({ locked }) => locked !== true)),
    locked: new Set(rows.filter(({ locked }) => locked === true).map(keyOf)),
  };
}

/** Names a step among those of all attempts of a queue: two of one job may record it side by side. */
export function stepKey({ id, fence, name }: Pick<StepToRecord, 'id' | 'fence' | 'name'>): string {
  return `${id} ${fence} ${name}`;
}

export function recordStepsQuery(
  tables: TablesOfWorkflows,
  holder: Holder,
  steps: readonly StepToRecord[],
  locks: RowLocks,
): SQL {
  const { queueJobs, queueSteps } = tables;
  const skip = locks === 'skip';
  const locked = sql`
    union all
    select i.id, i.fence, i.step ->> 'name', null, true from i
    where i.id not in (select id from held)
      and ((i.id, i.fence) in (
        select j.id, j.fence from ${queueJobs} as j where ${stillHeld(holder)}
      )) is true`;
  return sql`
    with i as materialized (
      select id, fence, step from ${planAnew()}${lockPatience(tables, locks)}
      cross join rows from (${idsAndFences(steps)},
        jsonb_array_elements(${stepsAsJson(steps)}::text::jsonb)
      ) as r(id, fence, step)
    ),
    held as materialized (
      select j.id, j.fence from ${queueJobs} as j
      where ${stillHeld(holder)}
      for no key update${skip ? sql` skip locked` : sql``}
    ),
    recorded as (
      insert into ${queueSteps} as s (job_id, queue, name, kind, output, error, attempts, fence, until,
        trace, started_at, ended_at)
      select i.id, ${holder.queue}, step ->> 'name', step ->> 'kind', step -> 'output', step -> 'error',
        (step ->> 'attempts')::int2, i.fence,
        least((step ->> 'until')::timestamptz,
          statement_timestamp() + (step ->> 'delayMs')::float8 * interval '1 millisecond'),
        step ->> 'trace',
        statement_timestamp() - (step ->> 'tookMs')::float8 * interval '1 millisecond',
        case when (step ->> 'ended')::bool then statement_timestamp() end
      from i join held as h on h.id = i.id and h.fence = i.fence
      on conflict (job_id, queue, name) do update
      set output = excluded.output, error = excluded.error, attempts = excluded.attempts,
        fence = excluded.fence, until = coalesce(s.until, excluded.until), ended_at = excluded.ended_at
      where s.ended_at is null or (s.fence = excluded.fence and excluded.ended_at is not null)
      returning s.job_id, s.fence, s.name, s.until
    )
    select job_id, fence, name, extract(epoch from until - statement_timestamp())::float8 * 1000 as left_ms${
      skip ? sql`, false as locked` : sql``
    }
    from recorded${skip ? locked : sql``}`;
}

function stepsAsJson(steps: readonly StepToRecord[]): string {
  const rows = steps.map(({ id: _, fence: __, output, attempts = 1, ...step }) => {
    const rest = JSON.stringify({ ...step, attempts });
    // It is JSON already, and may be large.
    return output === undefined ? rest : `${rest.slice(0, -1)},"output":${output}}`;
  });
  return `[${rows.join(',')}]`;
}

import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { type Holder, isStillHeld } from '../../../core/sql/fence.ts';
import { PLAIN_NAME } from '../../../core/sql/plain-name.ts';
import { planAnew } from '../../../core/sql/plan-anew.ts';
import { lockPatience, type RowLocks } from '../../../core/sql/row-locks.ts';
import { type TablesOfWorkflows, WORKFLOWS_ENTRY } from '../sql/workflow-tables.ts';
import { type RecordedStep, recordSteps, type StepToRecord, stepKey } from './record-steps.ts';

/**
 * Records one step of a held job; `undefined`: this worker no longer holds the job. In a transaction of the
 * app's, a step whose values are numbers and plain names has them in the text: nothing is prepared there, and
 * for a statement with parameters postgres.js makes two round trips. Outputs and errors stay parameters.
 *
 * **Under concurrency.** As `recordSteps`, which records what waits: how long is a question to the clock.
 *
 * @param locks `wait` in a transaction of the app's, `briefly` elsewhere: see `lockPatience`
 * @param isOnce whether one that this attempt has recorded before is refused, with what else is in `db`
 */
export async function recordOneStep(
  db: Runner,
  tables: TablesOfWorkflows,
  holder: Holder,
  step: StepToRecord,
  locks: Exclude<RowLocks, 'skip'>,
  isOnce = false,
): Promise<RecordedStep | undefined> {
  if (step.delayMs !== undefined || step.until !== undefined) {
    return (await recordSteps(db, tables, holder, [step], locks)).get(stepKey(step));
  }
  const asText = locks === 'wait' && isPlain(holder, step);
  const query = recordOneStepQuery(tables, holder, step, locks, { asText, isOnce });
  const sent = asText ? query.inlineParams() : query;
  const rows = await queryRows(db, tables, sent, { entry: WORKFLOWS_ENTRY });
  return rows.length === 0 ? undefined : { leftMs: undefined };
}

/** Whether all of its values are numbers and plain names. */
function isPlain({ queue }: Holder, { name, output, error }: StepToRecord): boolean {
  return output === undefined && error === undefined && PLAIN_NAME.test(queue) && PLAIN_NAME.test(name);
}

/**
 * By the primary keys alone: of what `recordStepsQuery` does for many, planning costs the most.
 *
 * @param asText whether no driver prepares it, so that it is planned for each execution anyway
 */
export function recordOneStepQuery(
  tables: TablesOfWorkflows,
  holder: Holder,
  step: Omit<StepToRecord, 'delayMs' | 'until'>,
  locks: Exclude<RowLocks, 'skip'>,
  { asText = false, isOnce = false }: { readonly asText?: boolean; readonly isOnce?: boolean } = {},
): SQL {
  const { queueJobs, queueSteps } = tables;
  const { name, kind, output, error, attempts = 1, tookMs, ended } = step;
  const repeated = isOnce ? sql`` : sql` or (s.fence = excluded.fence and excluded.ended_at is not null)`;
  const anew = asText ? sql`` : sql` and (select count(*) from ${planAnew()}) > 0`;
  return sql`
    with held as materialized (
      select j.id, j.queue, j.fence from ${queueJobs} as j${lockPatience(tables, locks)}
      where ${isStillHeld(holder, step)}${anew}
      for no key update of j
    )
    insert into ${queueSteps} as s (job_id, queue, name, kind, output, error, attempts, fence, started_at,
      ended_at)
    select id, queue, ${name}::text, ${kind}::text, ${output ?? null}::text::jsonb,
      ${error === undefined ? null : JSON.stringify(error)}::text::jsonb, ${attempts}::int2, fence,
      statement_timestamp() - ${tookMs}::float8 * interval '1 millisecond',
      case when ${ended ? 1 : 0}::int4 = 1 then statement_timestamp() end
    from held
    on conflict (job_id, queue, name) do update
    set output = excluded.output, error = excluded.error, attempts = excluded.attempts,
      fence = excluded.fence, ended_at = excluded.ended_at
    where s.ended_at is null${repeated}
    returning s.job_id`;
}

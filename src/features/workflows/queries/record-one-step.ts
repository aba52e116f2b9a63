import { type SQL, sql } from 'drizzle-orm';
import { queryRows, type Runner } from '../../../core/sql/executor.ts';
import { type Holder, isStillHeld } from '../../../core/sql/fence.ts';
import { KeptStatements, type Place } from '../../../core/sql/kept-statement.ts';
import { PLAIN_NAME } from '../../../core/sql/plain-name.ts';
import { planAnew } from '../../../core/sql/plan-anew.ts';
import { lockPatience, type RowLocks } from '../../../core/sql/row-locks.ts';
import { isOf, type TableSize, tableSize } from '../../../core/sql/table-size.ts';
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
  if (waits(step)) {
    return (await recordSteps(db, tables, holder, [step], locks)).get(stepKey(step));
  }
  const asText = locks === 'wait' && isPlain(holder, step);
  const query = recordOneStepQuery(tables, holder, step, locks, { asText, isOnce });
  const sent = asText ? query.inlineParams() : query;
  const rows = await queryRows(db, tables, sent, { entry: WORKFLOWS_ENTRY });
  return rows.length === 0 ? undefined : { leftMs: undefined };
}

/** How long is a question to the clock. */
export function waits({ delayMs, until }: StepToRecord): boolean {
  return delayMs !== undefined || until !== undefined;
}

/** Whether all of its values are numbers and plain names. */
function isPlain({ queue }: Holder, { name, output, error }: StepToRecord): boolean {
  return output === undefined && error === undefined && PLAIN_NAME.test(queue) && PLAIN_NAME.test(name);
}

/**
 * The same by a prepared statement that Postgres plans once: planning takes three quarters of its time. See
 * `TableSize` for what its plan may be.
 *
 * @returns `undefined` where the table of the jobs is of another size: then nothing is recorded
 */
export async function recordOneByKeptPlan(
  db: Runner,
  tables: TablesOfWorkflows,
  holder: Holder,
  step: StepOver,
  ifTableIs: TableSize,
): Promise<{ readonly recorded: RecordedStep | undefined } | undefined> {
  const query = recordOneStepQuery(tables, holder, step, 'briefly', { ifTableIs });
  const [row] = await queryRows(db, tables, query, { entry: WORKFLOWS_ENTRY });
  if (row?.[ifTableIs] !== true) return undefined;
  return { recorded: row.recorded === true ? { leftMs: undefined } : undefined };
}

/** One that does not wait. */
export type StepOver = Omit<StepToRecord, 'delayMs' | 'until'>;

interface OneStepOptions {
  /** Whether no driver prepares it, so that it is planned for each execution anyway. @default false */
  readonly asText?: boolean;
  /** Whether one that this attempt has recorded before is refused. @default false */
  readonly isOnce?: boolean;
  /** Records nothing unless the table is of this size: see `recordOneByKeptPlan`. @default undefined any */
  readonly ifTableIs?: TableSize | undefined;
}

/** By the primary keys alone: of what `recordStepsQuery` does for many, planning costs the most. */
export function recordOneStepQuery(
  tables: TablesOfWorkflows,
  { queue, workerId }: Holder,
  { id, fence, name, kind, output, error, attempts = 1, tookMs, ended }: StepOver,
  locks: Exclude<RowLocks, 'skip'>,
  { asText = false, isOnce = false, ifTableIs }: OneStepOptions = {},
): SQL {
  return statements.of(tables, { locks, asText, isOnce, ifTableIs }).with({
    ...{ queue, workerId, id, fence, name, kind, attempts, tookMs },
    output: output ?? null,
    error: error === undefined ? null : JSON.stringify(error),
    ended: ended ? 1 : 0,
  });
}

/** What the text of the statement depends on, beside the tables. */
interface Shape extends Required<Omit<OneStepOptions, 'ifTableIs'>> {
  readonly locks: Exclude<RowLocks, 'skip'>;
  readonly ifTableIs: TableSize | undefined;
}

/** What each execution fills in. */
interface Values extends Holder, Pick<StepOver, 'id' | 'fence' | 'name' | 'kind' | 'tookMs'> {
  readonly output: string | null;
  readonly error: string | null;
  readonly attempts: number;
  readonly ended: 0 | 1;
}

const statements = new KeptStatements(statementOf);

function statementOf(
  tables: TablesOfWorkflows,
  { locks, asText, isOnce, ifTableIs }: Shape,
  place: Place<Values>,
): SQL {
  const { queueJobs, queueSteps } = tables;
  const holder = { queue: place('queue'), workerId: place('workerId') };
  const held = isStillHeld(holder, { id: place('id'), fence: place('fence') });
  const repeated = isOnce ? sql`` : sql` or (s.fence = excluded.fence and excluded.ended_at is not null)`;
  const anew = asText ? sql`` : sql` and (select count(*) from ${planAnew()}) > 0`;
  const size = ifTableIs
    ? sql`${tableSize(queueJobs, ifTableIs)},
    `
    : sql``;
  const insert = sql`
    insert into ${queueSteps} as s (job_id, queue, name, kind, output, error, attempts, fence, started_at,
      ended_at)
    select id, queue, ${place('name')}::text, ${place('kind')}::text, ${place('output')}::text::jsonb,
      ${place('error')}::text::jsonb, ${place('attempts')}::int2, fence,
      statement_timestamp() - ${place('tookMs')}::float8 * interval '1 millisecond',
      case when ${place('ended')}::int4 = 1 then statement_timestamp() end
    from held
    on conflict (job_id, queue, name) do update
    set output = excluded.output, error = excluded.error, attempts = excluded.attempts,
      fence = excluded.fence, ended_at = excluded.ended_at
    where s.ended_at is null${repeated}
    returning s.job_id`;
  return sql`
    with ${size}held as materialized (
      select j.id, j.queue, j.fence from ${queueJobs} as j${lockPatience(tables, locks)}
      where ${held}${ifTableIs ? sql` and ${isOf(ifTableIs)}` : anew}
      for no key update of j
    )${
      ifTableIs
        ? sql`,
    recorded as (${insert}
    )
    select ${isOf(ifTableIs)} as ${sql.raw(ifTableIs)}, exists (select from recorded) as recorded`
        : insert
    }`;
}

import { type SQL, sql } from 'drizzle-orm';
import type { Finish } from '../../job/transition.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type OwnColumn, ownColumnsOf } from '../../schema/own-columns.ts';
import type { FinalState } from '../../schema/queue-results.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import {
  arrayText,
  type HeldJob,
  type Holder,
  type IdAndFenceTexts,
  stillHeld,
  textsOf,
  unnested,
} from '../../sql/fence.ts';
import { amongFree, freeRows } from '../../sql/free-rows.ts';
import { endHolds, handlersGoOn } from '../../sql/hold-end.ts';
import { insertResults, withoutPayload } from '../../sql/insert-results.ts';
import { KeptStatements, type Place } from '../../sql/kept-statement.ts';
import type { EndsAs } from '../../sql/member-extension.ts';
import { planAnew } from '../../sql/plan-anew.ts';
import { withError, withTime } from '../../sql/recorded-error.ts';
import { lockPatience, type RowLocks } from '../../sql/row-locks.ts';
import { groupsIn, nameInText } from '../../sql/statement-context.ts';
import { isOf, type TableSize, tableSize } from '../../sql/table-size.ts';

export interface FinishedJob extends HeldJob {
  readonly transition: Finish;
}

export interface FinishOptions {
  /** Does nothing unless the same transaction has written before: see `completeJob`. @default false */
  readonly onlyInTransaction?: boolean;
  /** Anything but `wait` only outside of a user's transaction: see `lockPatience`. @default 'wait' */
  readonly locks?: RowLocks;
  /** Ends nothing unless the table is of this size: see `finishByKeptPlan`. @default undefined any */
  readonly ifTableIs?: TableSize | undefined;
}

/**
 * Ends held jobs of one queue: deletes them from `queue_jobs` and writes their results, in one statement.
 * Returns the ids of those it ended; the others were no longer held under this fence, and stay as they are.
 *
 * A result that keeps only the outcome has null for its payload, which is then not written a second time.
 *
 * **Under concurrency.** Fenced: a job that was claimed again, rescheduled or ended in between does not
 * match. Nor does one that is to be discarded and whose end was requested meanwhile: it must end as
 * cancelled. Where another transaction is just changing the job, this waits for it and looks again. Delete
 * and insert commit together, so no reader ever sees the job in both tables or in neither.
 */
export async function finishJobs(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  finishes: readonly FinishedJob[],
  options?: FinishOptions,
): Promise<Set<number>> {
  const rows = await queryRows(db, tables, finishJobsQuery(tables, holder, finishes, options));
  return finishedBut(finishes, rows.map(toKey));
}

/**
 * The same for a few jobs by a prepared statement that Postgres plans once, which takes less than half of the
 * time. See `TableSize` for what its plan may be. It may also join the jobs with their results in loops.
 *
 * **Under concurrency.** As {@link finishJobs}.
 *
 * @returns `undefined` where the table is of another size: then it has ended nothing
 */
export async function finishByKeptPlan(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  finishes: readonly FinishedJob[],
  options: FinishOptions & { readonly ifTableIs: TableSize },
): Promise<Set<number> | undefined> {
  const rows = await queryRows(db, tables, finishJobsQuery(tables, holder, finishes, options));
  if (rows[0]?.[options.ifTableIs] === false) return undefined;
  return finishedBut(finishes, rows.map(toKey));
}

/**
 * Ends those of the jobs that no other transaction has locked. Of the others, `locked` names those that were
 * still held, so that the caller can try again.
 *
 * **Under concurrency.** As {@link finishJobs}, except that it waits for no other transaction: a locked row
 * is left alone. A row whose lock was just released may still be named as locked.
 */
export async function finishFreeJobs(
  db: Runner,
  tables: QueueTables,
  holder: Holder,
  finishes: readonly FinishedJob[],
): Promise<{ readonly finished: Set<number>; readonly locked: Set<number> }> {
  const rows = await queryRows(db, tables, finishJobsQuery(tables, holder, finishes, { locks: 'skip' }));
  const locked = rows.filter((row) => row.locked === true).map(({ id }) => Number(id));
  return { finished: finishedBut(finishes, rows.map(toKey)), locked: new Set(locked) };
}

function finishedBut(finishes: readonly FinishedJob[], notFinished: readonly string[]): Set<number> {
  const keys = new Set(notFinished);
  return new Set(finishes.filter((one) => keys.size === 0 || !keys.has(toKey(one))).map(({ id }) => id));
}

function toKey({ id, fence }: { readonly id?: unknown; readonly fence?: unknown }): string {
  return `${id}/${fence}`;
}

/**
 * Returns the ids and fences of those *not* ended: hardly ever any, so hardly ever a row to read.
 *
 * @endsHold an outcome, or `complete(tx)` of a batch
 * @insteadOnCitus (waiting briefly) finishJobsQuery, of free rows: it would wait there for as long as a row
 * is locked
 * @insteadOnCitus (of a small table; of a grown table) finishJobsQuery: the size of the coordinator's table
 * is 0
 * @insteadOnCitus (of members; of members in a small table; of members in groups) an error: no worker starts
 * there whose queue has workflows
 */
export function finishJobsQuery(
  tables: QueueTables,
  holder: Holder,
  finishes: readonly FinishedJob[],
  { onlyInTransaction = false, locks = 'wait', ifTableIs }: FinishOptions = {},
): SQL {
  const { queue, workerId } = holder;
  const transitions = finishes.map(({ transition }) => transition);
  const traits = traitsOf(transitions);
  const goesOn = onlyInTransaction && workerId !== null;
  const grouped = nameInText(tables, queue);
  const shape = { ...traits, grouped, onlyInTransaction, handlersGoOn: goesOn, locks, ifTableIs };
  return statements.of(tables, shape).with({
    queue,
    workerId,
    ...textsOf(finishes),
    ...endingsOf(transitions, traits),
    failed: traits.someFail ? idsOf(finishes, (state) => state !== 'completed') : '{}',
    cancelled: traits.someAreCancelled ? idsOf(finishes, (state) => state === 'cancelled') : '{}',
  });
}

/** What the text of the statement depends on, beside the tables. */
interface Shape extends Required<Omit<FinishOptions, 'ifTableIs'>> {
  readonly ifTableIs: TableSize | undefined;
  /** See `nameInText`. */
  readonly grouped: string;
  /** Which jobs leave a result: none, or some, with their payloads, without them, or each as it wants. */
  readonly results: 'none' | 'whole' | 'outcome' | 'either';
  readonly someAreDiscarded: boolean;
  readonly someFail: boolean;
  readonly someAreCancelled: boolean;
  readonly handlersGoOn: boolean;
}

/** What each execution fills in: arrays, and JSON arrays of outputs and errors. */
interface Values extends IdAndFenceTexts, Holder {
  readonly states: string;
  readonly keeps: string;
  readonly outputs: string;
  readonly errors: string;
  readonly wholes: string;
  readonly failed: string;
  readonly cancelled: string;
}

/** What the text depends on of how the jobs end. */
type Traits = Pick<Shape, 'results' | 'someAreDiscarded' | 'someFail' | 'someAreCancelled'>;

function traitsOf(transitions: readonly Finish[]): Traits {
  const some = (is: (transition: Finish) => boolean) => transitions.some(is);
  const whole = some(({ keepResult }) => keepResult === true);
  const outcome = some(({ keepResult }) => keepResult === 'outcome');
  const kept = whole ? 'whole' : outcome ? 'outcome' : 'none';
  return {
    results: whole && outcome ? 'either' : kept,
    someAreDiscarded: some(({ state }) => state === 'discarded'),
    someFail: some(({ state }) => state !== 'completed'),
    someAreCancelled: some(({ state }) => state === 'cancelled'),
  };
}

type Endings = Pick<Values, 'states' | 'keeps' | 'outputs' | 'errors' | 'wholes'>;

const NO_ENDINGS: Endings = { states: '{}', keeps: '{}', outputs: '[]', errors: '[]', wholes: '{}' };

/** What all leave at its default is null in each row. */
function endingsOf(transitions: readonly Finish[], { results, someFail }: Traits): Endings {
  if (results === 'none') return NO_ENDINGS;
  const states = someFail ? transitions.map(({ state }) => state) : [];
  const keeps = transitions.every(({ keepResult }) => keepResult)
    ? []
    : transitions.map(({ keepResult }) => keepResult !== false);
  const outputs = transitions.every(({ output }) => output === null || output === 'null')
    ? []
    : transitions.map(({ output }) => output ?? 'null');
  const errors = transitions.every(({ error }) => error === null)
    ? []
    : transitions.map(({ error }) => JSON.stringify(error));
  return {
    states: arrayText(states),
    keeps: arrayText(keeps),
    outputs: `[${outputs.join(',')}]`,
    errors: `[${errors.join(',')}]`,
    wholes: results === 'either' ? arrayText(transitions.map(({ keepResult }) => keepResult === true)) : '{}',
  };
}

function idsOf(finishes: readonly FinishedJob[], isOne: (state: FinalState) => boolean): string {
  return arrayText(finishes.filter(({ transition }) => isOne(transition.state)).map(({ id }) => id));
}

const statements = new KeptStatements(statementOf);

function statementOf(tables: QueueTables, shape: Shape, place: Place<Values>): SQL {
  const { grouped, results, someAreDiscarded, locks, ifTableIs } = shape;
  const { queueJobs } = tables;
  const queue = place('queue');
  const holder = { queue, workerId: place('workerId') };
  // A statement that writes gets its transaction's id as it does so, not before.
  const inTransaction = shape.onlyInTransaction
    ? sql` and pg_current_xact_id_if_assigned() is not null`
    : sql``;
  const size = ifTableIs
    ? sql`${tableSize(queueJobs, ifTableIs)},
    `
    : sql``;
  const from = sql`${ifTableIs ? sql`(select 1) as one` : planAnew()}${lockPatience(tables, locks)}`;
  const idsAndFences = unnested({ ids: place('ids'), fences: place('fences') });
  const held = sql`${stillHeld(holder)}${
    someAreDiscarded
      ? sql`
        and (j.cancel_reason is null or j.id not in (select id from i where state = 'discarded'))`
      : sql``
  }`;
  const skip = locks === 'skip';
  const free = skip
    ? sql`,
    ${freeRows(tables, held, sql`for update skip locked`)}`
    : sql``;
  const where = skip
    ? amongFree(queue)
    : sql`${held}${inTransaction}${ifTableIs ? sql` and ${isOf(ifTableIs)}` : sql``}`;
  const locked = skip
    ? sql`, (id, fence) in (select j.id, j.fence from ${queueJobs} as j where ${held}) as locked`
    : sql``;
  const change = { endsAs: endsAs(shape, place) };
  const going = shape.handlersGoOn ? handlersGoOn(holder, sql`i.id`, sql` from i`) : undefined;
  const rest = sql`
    select id, fence${locked}${
      ifTableIs ? sql`, ${isOf(ifTableIs)} as ${sql.raw(ifTableIs)}` : sql``
    } from i where (id, fence) not in (select id, fence from finished)`;
  if (results === 'none') {
    return endHolds(tables, {
      queue: grouped,
      ctes: sql`
    with ${size}i as materialized (
      select id, fence from ${from} cross join rows from (${idsAndFences}) as r(id, fence)
    )${free}`,
      change,
      blocks: going,
      where,
      returning: sql`j.id, j.fence`,
      answer: { name: 'finished', select: rest },
    });
  }
  // Behind one that was discarded nothing goes on, where the group waits for success.
  const stops = someAreDiscarded && groupsIn(tables, grouped)?.waitsForSuccess(grouped) === true;
  const { whole, wholes, payload, returning } = payloads(results, place, ownColumnsOf(queueJobs));
  return endHolds(tables, {
    queue: grouped,
    blocks: stops
      ? sql`select i.id, 'infinity'::timestamptz as until, null::int8 as worker_id from i
        where i.state = 'discarded'`
      : going,
    ctes: sql`
    with ${size}i as materialized (
      select id, fence, coalesce(state, 'completed') as state, coalesce(keep, true) as keep,
        nullif(output, 'null') as output,
        ${withTime(sql`nullif(error, 'null')`)} as error${whole}
      from ${from}
      cross join rows from (${idsAndFences}, ${endings(place)}${wholes})
        as r(id, fence, state, keep, output, error${whole})
    )${free}`,
    change,
    where,
    returning,
    answer: {
      name: 'finished',
      select: sql`,
    recorded as (${insertResults(tables, {
      payload,
      state: sql`i.state`,
      output: sql`i.output`,
      errors: withError(sql`f.errors`, sql`i.error`),
    })}
      from finished as f join i on i.id = f.id and i.fence = f.fence
      where i.keep
    )${rest}`,
    },
  });
}

/**
 * The payloads of the results. Where all keep theirs, or none does, no row says so. Where none does, they
 * are not carried from the delete to the insert either. That would be a copy of each, or a file beyond
 * `work_mem`.
 */
function payloads(results: Shape['results'], place: Place<Values>, own: readonly OwnColumn[]) {
  if (results === 'whole') {
    return { whole: sql``, wholes: sql``, payload: sql`f.payload`, returning: sql`j.*` };
  }
  if (results === 'outcome') {
    return { whole: sql``, wholes: sql``, payload: sql`null::jsonb`, returning: withoutPayload(own) };
  }
  return {
    whole: sql`, whole`,
    wholes: sql`, unnest(${place('wholes')}::text::bool[])`,
    payload: sql`case when i.whole then f.payload end`,
    returning: sql`j.*`,
  };
}

/** How the jobs `e` end. */
function endsAs({ someFail, someAreCancelled }: Shape, place: Place<Values>): EndsAs {
  const among = (name: 'failed' | 'cancelled') => sql`e.id = any(${place(name)}::text::int8[])`;
  return {
    failed: someFail ? among('failed') : sql`false`,
    cancelled: someAreCancelled ? among('cancelled') : undefined,
  };
}

/** State, keep, output and error for `rows from (…)`. */
function endings(place: Place<Values>): SQL {
  return sql`unnest(${place('states')}::text::text[]), unnest(${place('keeps')}::text::bool[]),
        jsonb_array_elements(${place('outputs')}::text::jsonb),
        jsonb_array_elements(${place('errors')}::text::jsonb)`;
}

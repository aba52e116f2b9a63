import { type SQL, sql } from 'drizzle-orm';
import type { KeepResult } from '../../job/definition.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import { queryRows, type Transaction } from '../../sql/executor.ts';
import { type HeldJob, type Holder, isStillHeld } from '../../sql/fence.ts';
import { endHolds, handlersGoOn } from '../../sql/hold-end.ts';
import { insertResults, withoutPayload } from '../../sql/insert-results.ts';
import { KeptStatements, type Place } from '../../sql/kept-statement.ts';
import { PLAIN_NAME } from '../../sql/plain-name.ts';
import { planAnew } from '../../sql/plan-anew.ts';
import { nameInText } from '../../sql/statement-context.ts';

export interface CompletedJob extends HeldJob {
  /** JSON text; `undefined`: the handler gave none. */
  readonly output: string | undefined;
  readonly keepResult: KeepResult;
}

/**
 * Ends one held job, if the same transaction has written before; whether it did. Where all of its values are
 * numbers and a plain name, these stand in the text: a transaction of the app's prepares nothing, and for a
 * statement with parameters postgres.js then makes two round trips. What handlers give stays a parameter.
 *
 * **Under concurrency.** As `finishJobs`.
 */
export async function completeOneJob(
  tx: Transaction,
  tables: QueueTables,
  holder: Holder,
  job: CompletedJob,
): Promise<boolean> {
  const asText = job.output === undefined && PLAIN_NAME.test(holder.queue);
  const query = completeOneJobQuery(tables, holder, job, asText);
  return (await queryRows(tx, tables, asText ? query.inlineParams() : query)).length > 0;
}

/** What the text of the statement depends on, beside the tables. */
interface Shape {
  /** See `nameInText`. */
  readonly grouped: string;
  readonly keepResult: KeepResult;
  readonly hasOutput: boolean;
  readonly isHeldByWorker: boolean;
  readonly asText: boolean;
}

/** What each execution fills in. */
interface Values extends HeldJob, Holder {
  readonly output: string | undefined;
}

const statements = new KeptStatements(statementOf);

/**
 * By the primary key alone: of what `finishJobsQuery` does for many, planning costs the most.
 *
 * @param asText whether no driver prepares it, so that it is planned for each execution anyway
 * @endsHold `complete(tx)`
 * @insteadOnCitus (of members) an error: no worker starts there whose queue has workflows
 */
export function completeOneJobQuery(
  tables: QueueTables,
  { queue, workerId }: Holder,
  { id, fence, output, keepResult }: CompletedJob,
  asText = false,
): SQL {
  const hasOutput = output !== undefined;
  const grouped = nameInText(tables, queue);
  const shape = { grouped, keepResult, hasOutput, isHeldByWorker: workerId !== null, asText };
  return statements.of(tables, shape).with({ queue, id, fence, workerId, output });
}

function statementOf(
  tables: QueueTables,
  { grouped, keepResult, hasOutput, isHeldByWorker, asText }: Shape,
  place: Place<Values>,
): SQL {
  const holder = { queue: place('queue'), workerId: place('workerId') };
  const id = place('id');
  const anew = asText ? sql`` : sql` and (select count(*) from ${planAnew()}) > 0`;
  const where = sql`${isStillHeld(holder, { id, fence: place('fence') })}
        and pg_current_xact_id_if_assigned() is not null${anew}`;
  // Where the handler's transaction itself is the hold, nothing goes on after it.
  const blocks = isHeldByWorker ? handlersGoOn(holder, sql`${id}::int8`) : undefined;
  const endsAs = { failed: sql`false`, cancelled: undefined };
  const end = { queue: grouped, change: { endsAs }, blocks, where };
  if (keepResult === false) return endHolds(tables, { ...end, returning: sql`j.id` });
  const isWhole = keepResult === true;
  const insert = insertResults(tables, {
    payload: isWhole ? sql`f.payload` : sql`null::jsonb`,
    state: sql`'completed'`,
    output: hasOutput ? sql`${place('output')}::text::jsonb` : sql`null::jsonb`,
    errors: sql`f.errors`,
  });
  return endHolds(tables, {
    ...end,
    returning: isWhole ? sql`j.*` : withoutPayload(ownColumnsOf(tables.queueJobs)),
    answer: {
      name: 'finished',
      select: sql`,
    recorded as (${insert}
      from finished as f
    )
    select id from finished`,
    },
  });
}

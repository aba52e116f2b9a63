import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Holder } from './fence.ts';
import type { Valued } from './kept-statement.ts';
import type { EndsAs } from './member-extension.ts';
import { groupsIn, membersIn } from './statement-context.ts';

export type HoldEndChange =
  /** They leave the table. */
  | { readonly endsAs: EndsAs }
  /** They stay, unheld. */
  | {
      readonly set: SQL;
      /** Rows that `set` and `where` refer to, as a `FROM` names them. */
      readonly from?: SQL;
      readonly claimedAt?: SQL;
    };

export interface HoldEnd {
  /** The queue of all of the rows, or what `nameInText` says of it. */
  readonly queue: string;
  readonly change: HoldEndChange;
  /** Which rows of `queue_jobs as j`; it names their queue. */
  readonly where: SQL;
  readonly returning: SQL;
}

/** How a claim hands jobs to their next holder. */
export interface HandOver {
  /** The CTEs before it, from `with` on. */
  readonly ctes: SQL;
  readonly holder: SQL;
  readonly claimedAt: SQL;
  readonly set: SQL;
  readonly where: SQL;
  readonly returning: SQL;
  /** The statement's own result and its name for the rows of `returning`. */
  readonly answer: { readonly name: string; readonly select: SQL };
}

/** A statement around a {@link HoldEnd}. */
export interface HoldEndStatement extends HoldEnd {
  /** The CTEs before it, from `with` on. */
  readonly ctes?: SQL | undefined;
  /** The statement's own result and its name for the rows of `returning`, which otherwise are the result. */
  readonly answer?: { readonly name: string; readonly select: SQL } | undefined;
  /**
   * A select of `id`, `until` and `worker_id`: these jobs keep their slot in their group until then, or until
   * the worker's handler has ended (see `queue_holds`). Heeded only in queues with groups.
   */
  readonly blocks?: SQL | undefined;
}

/**
 * The one door out of a hold: every statement that takes a job's holder away, hands the job to another holder
 * or deletes it from `queue_jobs` is built here, and none elsewhere (a test holds that). A slot of a limit
 * may become free with the end of a hold, or a job may wait for this one. That is written here too, as a CTE
 * that reads the rows of the change and inserts notes. It commits together with the end, on every path, and
 * changes no row that others want. Only the statements of queues with groups, and of queues with workflows,
 * have any of it.
 *
 * **Under concurrency.** The change locks the rows it ends. A statement that came first, such as another end
 * of the same hold, leaves rows that `where` no longer matches.
 */
export function endHolds(tables: QueueTables, statement: HoldEndStatement): SQL {
  const { queue, change, where, returning, ctes = sql``, answer, blocks } = statement;
  const groups = groupsIn(tables, queue);
  const endsAs = 'endsAs' in change ? change.endsAs : undefined;
  const members = endsAs === undefined ? undefined : membersIn(tables);
  const memberOf = members === undefined ? sql`` : sql`, j.batch_id as member_of`;
  const ended = sql`${changed(tables, change)}
    where ${where}
    returning ${returning}${groups?.endedColumns ?? sql``}${memberOf}`;
  if (answer === undefined && groups === undefined && members === undefined) return sql`${ctes}${ended}`;
  const { name, select } = answer ?? {
    name: 'ended',
    select: sql`
    select * from ended`,
  };
  return sql`${
    statement.ctes === undefined
      ? sql`
    with `
      : sql`${ctes},
    `
  }${sql.raw(name)} as (${ended}
    )${groups?.afterEnds({ queue, rows: name, endsAs, blocks }) ?? sql``}${
      endsAs === undefined ? sql`` : (members?.afterEnds(name, endsAs) ?? sql``)
    }${select}`;
}

/**
 * The same door where a new holder takes the jobs: what hangs on the end of a hold has to wait for the end of
 * theirs.
 *
 * **Under concurrency.** As {@link endHolds}.
 */
export function handOver(tables: QueueTables, statement: HandOver): SQL {
  const { ctes, holder, claimedAt, set, where, returning, answer } = statement;
  return sql`${ctes},
    ${sql.raw(answer.name)} as (${updated(tables, { holder, claimedAt, set })}
    where ${where}
    returning ${returning}
    )${answer.select}`;
}

/**
 * The `blocks` of jobs that their own handlers end, which go on to run: each keeps its slot until the worker
 * says that its handler has ended. `undefined` where the handler's transaction itself is the hold.
 *
 * @param from where the ids are: nothing, or ` from …`
 */
export function handlersGoOn(
  { workerId }: Pick<Valued<Holder>, 'workerId'>,
  id: SQL,
  from = sql``,
): SQL | undefined {
  if (workerId === null) return undefined;
  return sql`select ${id} as id, 'infinity'::timestamptz as until, ${workerId}::int8 as worker_id${from}`;
}

function changed(tables: QueueTables, change: HoldEndChange): SQL {
  if (!('endsAs' in change)) return updated(tables, { holder: sql`null`, claimedAt: sql`null`, ...change });
  return sql`
    delete from ${tables.queueJobs} as j`;
}

function updated(
  { queueJobs }: QueueTables,
  { holder, claimedAt, set, from }: Pick<HandOver, 'holder' | 'claimedAt' | 'set'> & { readonly from?: SQL },
): SQL {
  return sql`
    update ${queueJobs} as j
    set worker_id = ${holder}, claimed_at = ${claimedAt}, ${set}${
      from === undefined
        ? sql``
        : sql`
    from ${from}`
    }`;
}

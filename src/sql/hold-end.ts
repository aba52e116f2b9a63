import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../schema/create-queue-tables.ts';

/** What becomes of jobs whose hold ends. */
export type HoldEndChange =
  /** They leave the table. */
  | 'delete'
  /** They stay: held by nobody, unless a `holder` takes them in the same statement. */
  | {
      readonly set: SQL;
      /** Rows that `set` and `where` refer to, as a `FROM` names them. */
      readonly from?: SQL;
      readonly holder?: SQL;
      readonly claimedAt?: SQL;
    };

export interface HoldEnd {
  readonly change: HoldEndChange;
  /** Which rows of `queue_jobs as j`; it names their queue. */
  readonly where: SQL;
  readonly returning: SQL;
}

/** A statement around a {@link HoldEnd}. */
export interface HoldEndStatement extends HoldEnd {
  /** The CTEs before it, from `with` on. */
  readonly ctes?: SQL | undefined;
  /** The statement's own result and its name for the rows of `returning`, which otherwise are the result. */
  readonly answer?: { readonly name: string; readonly select: SQL } | undefined;
}

/**
 * The one door out of a hold: every statement that takes a job's holder away, hands the job to another holder
 * or deletes it from `queue_jobs` is built here, and none elsewhere (a test holds that). What hangs on the
 * end of a hold (a slot of a limit that becomes free, a job that waits for this one) is written here, as a
 * CTE that reads the rows of the change and inserts notes. It then commits together with the end, on every
 * path, and changes no row that others want.
 *
 * **Under concurrency.** The change locks the rows it ends. A statement that came first, such as another end
 * of the same hold, leaves rows that `where` no longer matches.
 */
export function endHolds(
  tables: QueueTables,
  { change, where, returning, ctes = sql``, answer }: HoldEndStatement,
): SQL {
  const ended = sql`${changed(tables, change)}
    where ${where}
    returning ${returning}`;
  if (answer === undefined) return sql`${ctes}${ended}`;
  return sql`${ctes},
    ${sql.raw(answer.name)} as (${ended}
    )${answer.select}`;
}

function changed({ queueJobs }: QueueTables, change: HoldEndChange): SQL {
  if (change === 'delete') {
    return sql`
    delete from ${queueJobs} as j`;
  }
  const { set, from, holder = sql`null`, claimedAt = sql`null` } = change;
  return sql`
    update ${queueJobs} as j
    set worker_id = ${holder}, claimed_at = ${claimedAt}, ${set}${
      from === undefined
        ? sql``
        : sql`
    from ${from}`
    }`;
}

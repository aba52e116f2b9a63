import { type SQL, sql } from 'drizzle-orm';

/*
 * How many attempts right before this one ended *silently*: they left no error, as when their worker was
 * killed. 0 for a job that ends without running. An error of this attempt or a later one is from before a
 * redrive or progress, which count the attempts anew.
 *
 * A claim decides by it in SQL which jobs begin, and the worker then what it may lose with a job: both forms
 * must say the same of a row.
 */

/** What is asked of a claimed job. */
interface AttemptedJob {
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly errors: readonly { readonly attempt: number }[];
}

export function silentEnds({ attempt, maxAttempts, errors }: AttemptedJob): number {
  if (attempt === 1 || attempt > maxAttempts) return 0;
  const recorded = errors.at(-1)?.attempt ?? 0;
  return attempt - 1 - (recorded < attempt ? recorded : 0);
}

/** The same of the row `j`, whose next attempt this is. */
export function silentEndsOf(attempt: SQL): SQL {
  const recorded = sql.raw(`(j.errors -> -1 -> 'attempt')::int4`);
  return sql`case when ${attempt} between 2 and j.max_attempts
            then ${attempt} - 1 - case when ${recorded} < ${attempt} then ${recorded} else 0 end else 0 end`;
}

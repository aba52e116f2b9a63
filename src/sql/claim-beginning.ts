import { type SQL, sql } from 'drizzle-orm';
import { servedKind } from './served-kind.ts';

/**
 * The first jobs of a claim up to one that may kill its worker: one of another kind, or one that has to begin
 * apart (`mostTogether`). Only with bands, whose jobs come in order.
 */
export interface Beginners {
  readonly atMost: number;
  readonly provenKinds: readonly string[];
}

/**
 * The new `claimed_at` of the claimed job `j`; `within` names the claimed jobs in their order.
 *
 * Null for a job that is claimed without beginning: the array has no second element. Citus takes no function
 * of time within a CASE.
 */
export function claimedAt(attempt: SQL, beginning: 0 | 1 | Beginners | undefined): SQL {
  if (beginning === undefined) return sql`statement_timestamp()`;
  const begins =
    typeof beginning === 'number'
      ? sql`j.id = (select id from within limit ${beginning}::int8)`
      : sql`j.id in (select id from (select * from within limit ${beginning.atMost}::int8) as w where calm)`;
  return sql`(array[statement_timestamp()])[case
        when (${attempt} = j.max_attempts or ${withoutWord(attempt)} > 0)
          and (${begins}) is not true then 2
        else 1
      end]`;
}

/** How many attempts right before this one left no error; 0 for a job that ends without running. */
function withoutWord(attempt: SQL): SQL {
  const lastRecorded = sql`coalesce((j.errors -> -1 -> 'attempt')::int4, 0)`;
  return sql`case when ${attempt} between 2 and j.max_attempts
            then ${attempt} - 1 - ${lastRecorded} else 0 end`;
}

/** Whether others may begin together with the job: see `mostTogether`. */
export function isCalm(attempt: SQL, kinds: readonly string[], { provenKinds }: Beginners): SQL {
  const proven = kinds.every((kind) => provenKinds.includes(kind))
    ? sql``
    : sql`${servedKind(provenKinds)} and `;
  return sql`(${proven}${withoutWord(attempt)} <= (${attempt} < j.max_attempts)::int4)`;
}

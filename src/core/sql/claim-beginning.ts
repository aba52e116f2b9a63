import { type SQL, sql } from 'drizzle-orm';
import type { Value } from './kept-statement.ts';
import { silentEndsOf } from './silent-ends.ts';

/*
 * Which of the claimed jobs begin with their claim. A crash spends the attempt of each that has begun. So one
 * whose attempt is *precious* begins later, just before its handler is called. It begins with the claim only
 * where it comes soon, and nothing that may kill the worker is before it. `Beginnings` of the worker decides
 * about the others, by the same words (`precious-attempt.ts`):
 *
 * - *silent* ends: of attempts right before this one, which left no error, as when their worker was killed.
 * - *precious*: the last attempt, or one after a silent end.
 * - *proven*: an attempt of this kind has ended in this process, and the worker lives.
 * - *calm*: others may begin together with it.
 */

/**
 * The first jobs of a claim up to one that may kill its worker: one of another kind, or one that has to begin
 * apart (`mostTogether`). Only with bands, whose jobs come in order.
 */
export interface Beginners {
  readonly atMost: number;
  readonly provenKinds: readonly string[];
}

/** `all`, those that do not {@link beginsLater}, or this many of the first. */
export type Beginning = 'all' | 'unless later' | { readonly first: Value<0 | 1> };

/** The number of the attempt that begins with the claim. One that never began is not counted twice. */
export const NEXT_ATTEMPT = sql.raw('j.attempt + (j.worker_id is null or j.claimed_at is not null)::int4');

/**
 * The new `claimed_at` of the claimed job `j`. `within` names the claimed jobs in their order, and
 * where it is asked for, which of them {@link beginsLater}.
 *
 * Null for a job that is claimed without beginning: the array has no second element. Citus takes no function
 * of time within a CASE, and takes a subscript that stands alone after SET for an assignment to an element,
 * which crashes its server (its issue 7675): hence `greatest` of one value, which is that value.
 */
export function claimedAt(attempt: SQL, beginning: Beginning): SQL {
  if (beginning === 'all') return sql`statement_timestamp()`;
  if (beginning === 'unless later') {
    // Hardly ever a row: to list those that begin would cost a search among all of them for each.
    return sql`greatest((array[statement_timestamp()])[case
        when j.id in (select id from within where later) then 2 else 1
      end])`;
  }
  return sql`greatest((array[statement_timestamp()])[case
        when (${attempt} = j.max_attempts or ${silentEndsOf(attempt)} > 0)
          and (j.id = (select id from within limit ${beginning.first}::int8)) is not true then 2
        else 1
      end])`;
}

/**
 * What {@link beginsLater} asks of the due job `j`: to look into its errors once costs enough.
 *
 * @param proven whether its kind is
 */
export function risksOf(attempt: SQL, proven: SQL): SQL {
  return sql`${attempt} = j.max_attempts as last, ${silentEndsOf(attempt)} as silent,
          ${proven} as proven`;
}

/** Whether others may begin together with a job of these {@link risksOf}: see `mostTogether`. */
const CALM = sql.raw('(proven and silent <= (not last)::int4)');

/**
 * Whether a job does not begin with its claim, as a column beside {@link risksOf}: its attempt is precious,
 * and it is not among the first `atMost`, or not all before it are calm. A claim has one window for all that
 * it asks about the jobs before: each more costs time.
 *
 * @param before the window of those rows that come before this one
 */
export function beginsLater(atMost: Value<number>, before: SQL): SQL {
  return sql`(last or silent > 0) and not (
          ${CALM} and coalesce(bool_and(${CALM}) over ${before}, true)
          and count(*) over ${before} < ${atMost}::int8) as later`;
}

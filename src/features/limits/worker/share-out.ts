import type { LeaseShare } from '../queries/find-leases.ts';

/** A worker that has its last slot for so long lets others have it that have none. */
const SLICE_MS = 1_000;
const MIN_REST_MS = 100;
const MAX_REST_MS = 10_000;

/**
 * How many unused slots a worker may keep; `Infinity` for all. A worker that has more than its share gives
 * some back while others lack theirs. All workers give slots back while they have more than the limit, such
 * as after it was lowered. Where there are more workers than slots, they take turns: a kind may be served by
 * one of them alone.
 *
 * @param heldMs how long it has had slots
 */
export function keepOf(share: LeaseShare, heldMs: number): number {
  const { limit, total, sharing, leastLacking } = share;
  if (limit === undefined) return Number.POSITIVE_INFINITY;
  const workers = Math.max(sharing, 1);
  // Nothing begins until fewer run.
  if (total > limit) return 0;
  const least = Math.floor(limit / workers);
  if (leastLacking === undefined) return Number.POSITIVE_INFINITY;
  if (least === 0) {
    if (leastLacking > 0) return Number.POSITIVE_INFINITY;
    return heldMs < SLICE_MS ? 1 : 0;
  }
  if (leastLacking < least) return least;
  const most = Math.ceil(limit / workers);
  return leastLacking < most ? most : Number.POSITIVE_INFINITY;
}

/** How long to ask for none, when a worker may keep none: until the others have had their turns, about. */
export function restMs({ limit = 1, total, sharing }: LeaseShare): number {
  if (total > limit) return MIN_REST_MS;
  return Math.min(Math.max(SLICE_MS * (sharing / limit - 1), MIN_REST_MS), MAX_REST_MS);
}

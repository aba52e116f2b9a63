/** Among this many jobs, trial claims find the one whose row is refused. */
const FEW = 4;
/** No claim asks for more, so that it may as well ask for all. */
const MAX_JOBS = 10_000;

/**
 * How many jobs a claim asks for where a row near it refuses. A claim takes jobs in their order, so each
 * smaller one that is accepted takes what lies before that row, and the next is for half of what is left in
 * between: the search for the row does what claims are for. Once it is found, claims double until they ask
 * for all again: another may be near.
 */
export class NearRefusal {
  /** The row that refuses is among this many next ones, as far as is known. */
  #within = Number.POSITIVE_INFINITY;
  /** The most to ask for beyond it. */
  #most = Number.POSITIVE_INFINITY;

  /** How many jobs to ask for, where there is use for `limit`. */
  of(limit: number): number {
    const half = Math.max(Math.ceil(this.#within / 2), FEW);
    return Math.min(limit, this.#most, half);
  }

  /** A claim of this many was refused. Returns whether a smaller one is worth a try. */
  noteRefused(limit: number): boolean {
    if (limit <= FEW) return false;
    this.#within = limit;
    return true;
  }

  /** The row was searched for, and found or not. */
  noteSearched(found: boolean): void {
    this.#within = Number.POSITIVE_INFINITY;
    this.#most = found ? 2 * FEW : Number.POSITIVE_INFINITY;
  }

  /** A claim was accepted: how many jobs it asked for, and how many it brought. */
  noteAccepted(limit: number, claimed: number): void {
    if (this.#most === Number.POSITIVE_INFINITY && this.#within === Number.POSITIVE_INFINITY) return;
    this.#within -= claimed;
    this.#most = 2 * Math.max(limit, FEW);
    const isPast = claimed < limit || this.#within <= 0;
    if (isPast) this.#within = Number.POSITIVE_INFINITY;
    if (claimed < limit || this.#most > MAX_JOBS) this.#most = Number.POSITIVE_INFINITY;
  }
}

import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import { MAX_CLAIM_BYTES } from '../../sql/claim-statement.ts';

/** The least weight of one job in what is known of the size of payloads: as in `Prefetch`. */
const WEIGHT = 0.05;
/** For this long after a claim that was too large, claims stay below a share of its size. */
const SHY_MS = 60_000;
const SHY_SHARE = 0.75;
/** No claim asks for more. */
const MAX_JOBS = 10_000;

/**
 * The most jobs that one claim of a queue asks for. The statement itself stops at 8 MB of payloads, but to
 * know that it decompresses as many as it asks for. And a server may allow less: a claim that takes longer
 * than `statement_timeout`, or more room than the server has, is halved. Later ones grow again slowly.
 */
export class ClaimSize {
  #most = Number.POSITIVE_INFINITY;
  /** The size of the last claim that was too large, until that is forgotten. */
  #failed = Number.POSITIVE_INFINITY;
  #failedMs = Number.NEGATIVE_INFINITY;
  #recentBytes = 0;

  /** How many jobs to ask for, where there is use for `limit`. */
  of(limit: number): number {
    if (limit <= 1) return limit;
    const byBytes = Math.ceil((2 * MAX_CLAIM_BYTES) / Math.max(this.#recentBytes, 1));
    return Math.max(1, Math.min(limit, this.#most, byBytes));
  }

  /** A claim of this many jobs was too large. Returns whether a smaller one is worth a try. */
  shrink(limit: number, nowMs: number): boolean {
    this.#failed = limit;
    this.#failedMs = nowMs;
    this.#most = Math.max(1, limit >> 1);
    return limit > 1;
  }

  /** Learns from a claim that asked for this many jobs. */
  note(limit: number, jobs: readonly ClaimedJob[], nowMs: number): void {
    for (const { payloadBytes } of jobs)
      this.#recentBytes = Math.max(payloadBytes, this.#recentBytes * (1 - WEIGHT));
    if (limit < this.#most) return;
    const isShy = nowMs < this.#failedMs + SHY_MS;
    const ceiling = isShy ? Math.max(1, Math.floor(this.#failed * SHY_SHARE)) : Number.POSITIVE_INFINITY;
    const grown = Math.min(this.#most + Math.max(1, this.#most >> 3), ceiling);
    this.#most = grown > MAX_JOBS ? Number.POSITIVE_INFINITY : Math.max(grown, this.#most);
  }
}

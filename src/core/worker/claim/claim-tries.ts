import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import type { RefusedJob } from '../../queries/claim/find-refused-jobs.ts';
import type { WorkerEmitter } from '../base/events.ts';
import { isAboutSize, mayBeSmaller } from '../base/refusal.ts';
import { ClaimSize } from './claim-size.ts';
import { NearRefusal } from './near-refusal.ts';
import { RefusedClaims, type RefusedClaimsOptions } from './refused-claims.ts';
import type { SetAside } from './set-aside.ts';

export interface ClaimTriesOptions extends Omit<RefusedClaimsOptions, 'onRefused'> {
  readonly events?: Pick<WorkerEmitter, 'emit'> | undefined;
}

/** One claim to send. */
export interface ClaimToTry<T> {
  /** The most jobs that there is use for. */
  readonly limit: number;
  /** Sends it for at most `limit` jobs, without those that are set aside now. */
  readonly send: (limit: number, without: readonly number[]) => Promise<T>;
  /** Reads the ids of the jobs that it may have met, without those. */
  readonly candidates: (limit: number, without: readonly number[]) => Promise<readonly number[]>;
}

/** A search after a refusal reads at least this many jobs: in a smaller sample all may be bad. */
const MIN_CANDIDATES = 100;

/**
 * Sends the claims of one queue, each as often as it takes: without the jobs whose rows the database refuses,
 * and smaller where it was too large. Only for a reason of the connection or the server does it fail.
 */
export class ClaimTries {
  readonly #queue: string;
  readonly #events: ClaimTriesOptions['events'];
  readonly #refused: RefusedClaims;
  readonly #size = new ClaimSize();
  readonly #near = new NearRefusal();

  constructor(options: ClaimTriesOptions) {
    this.#queue = options.queue;
    this.#events = options.events;
    this.#refused = new RefusedClaims({ ...options, onRefused: (...told) => this.#announce(...told) });
  }

  get setAside(): SetAside {
    return this.#refused.setAside;
  }

  /** @throws what the last try has failed with */
  async send<T extends { readonly jobs: readonly ClaimedJob[] }>(claim: ClaimToTry<T>): Promise<T> {
    // As a rule none has lapsed, and then the claim is sent at once.
    if (this.setAside.againInMs(performance.now()) === 0) await this.#refused.tryAgain();
    for (;;) {
      const limit = this.#near.of(this.#size.of(claim.limit));
      try {
        const answer = await claim.send(limit, this.setAside.ids);
        this.#size.note(limit, answer.jobs, performance.now());
        this.#near.noteAccepted(limit, answer.jobs.length);
        this.#refused.noteAccepted(answer.jobs.length);
        return answer;
      } catch (error) {
        if (!(await this.#overcome(claim, limit, error))) throw error;
      }
    }
  }

  async #overcome<T>({ candidates }: ClaimToTry<T>, limit: number, error: unknown): Promise<boolean> {
    if (!this.#refused.mayOvercome(error)) return this.#mayShrink(limit, error);
    // What was too large says nothing of where that lies.
    if (!isAboutSize(error) && this.#near.noteRefused(limit)) return true;
    const met = () => candidates(Math.max(limit, MIN_CANDIDATES), this.setAside.ids);
    const found = await this.#refused.overcome(limit, met);
    this.#near.noteSearched(found);
    return found || this.#mayShrink(limit, error);
  }

  #mayShrink(limit: number, error: unknown): boolean {
    if (!isAboutSize(error) || !this.#size.shrink(limit, performance.now())) return false;
    if (!mayBeSmaller(error)) return false;
    const most = this.#size.of(limit);
    const during = `claiming ${limit} jobs from '${this.#queue}'; it now claims ${most} at once`;
    this.#events?.emit('error', { error, during });
    return true;
  }

  #announce({ id, kind }: RefusedJob, error: unknown): void {
    const during = `claiming job ${id} ('${kind}') from '${this.#queue}'; it sets the job aside`;
    this.#events?.emit('error', { error, during });
  }
}

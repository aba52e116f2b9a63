import { describeThrown } from '../../job/describe-error.ts';
import { type Claim, type ClaimedJob, claimJobs } from '../../queries/claim/claim-jobs.ts';
import { findDueIds } from '../../queries/claim/find-due-ids.ts';
import { warn } from '../../runtime.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database, Runner } from '../../sql/executor.ts';
import { perDatabase } from '../../sql/per-database.ts';
import { Bands } from './bands.ts';
import { RefusedClaims } from './refused-claims.ts';

/** Claims from the very start may take one part in this many of the time. */
const SHARE = 20;
/** Beyond this many queues of one database it forgets them all: their names may be without end. */
const MAX_QUEUES = 1_000;
const EVERYTHING = new Bands().next(1, 0);

const remembered = /* @__PURE__ */ perDatabase(() => new Map<string, NextClaims>());

/** The claims of single jobs of one queue, which remember between calls where the last one stopped. */
export class NextClaims {
  readonly #bands = new Bands();
  readonly #refused: RefusedClaims;
  #nextWholeMs = Number.NEGATIVE_INFINITY;

  constructor(db: Database, tables: QueueTables, queue: string) {
    const onRefused = ({ id, kind }: { id: number; kind: string }, error: unknown) =>
      warn(
        `runNext skips job ${id} ('${kind}') of '${queue}', because the database refuses its claim: ` +
          describeThrown(error).message,
      );
    this.#refused = new RefusedClaims({ db, tables, queue, workerId: null, mayPark: true, onRefused });
  }

  /** The one for a queue and some kinds, kept for as long as the app keeps the database. */
  static of(db: Database, tables: QueueTables, queue: string, kinds: readonly string[]): NextClaims {
    const ofTables = remembered(db, tables);
    const key = JSON.stringify([queue, ...kinds]);
    if (ofTables.size >= MAX_QUEUES && !ofTables.has(key)) ofTables.clear();
    const claims = ofTables.get(key) ?? new NextClaims(db, tables, queue);
    ofTables.set(key, claims);
    return claims;
  }

  /** Before a transaction: tries those again that were left out some time ago. */
  async prepare(): Promise<void> {
    await this.#refused.tryAgain();
  }

  /** After the claim's transaction was rolled back: whether the same without the next job is worth a try. */
  async overcome(
    error: unknown,
    db: Database,
    tables: QueueTables,
    { queue, kinds }: Pick<Claim, 'queue' | 'kinds'>,
  ): Promise<boolean> {
    if (!this.#refused.mayOvercome(error)) return false;
    const without = this.#refused.setAside.ids;
    const question = { queue, kinds, bands: EVERYTHING, limit: 1, without };
    return await this.#refused.overcome(1, () => findDueIds(db, tables, question));
  }

  /**
   * Claims the next job; returns `undefined` only when none is due at all. Starts where the last claim did,
   * or at the very start when nothing is due from there on or that costs little, as on a healthy table.
   */
  async next(
    runner: Runner,
    tables: QueueTables,
    claim: Omit<Claim, 'bands' | 'limit'>,
  ): Promise<ClaimedJob | undefined> {
    if (performance.now() < this.#nextWholeMs) {
      const job = await this.#claim(runner, tables, claim, false);
      if (job !== undefined) return job;
    }
    return await this.#claim(runner, tables, claim, true);
  }

  async #claim(
    runner: Runner,
    tables: QueueTables,
    claim: Omit<Claim, 'bands' | 'limit'>,
    whole: boolean,
  ): Promise<ClaimedJob | undefined> {
    const startMs = performance.now();
    const bands = whole ? EVERYTHING : this.#bands.next(1, startMs);
    const without = this.#refused.setAside.ids;
    const jobs = await claimJobs(runner, tables, { ...claim, bands, limit: 1, without });
    this.#refused.noteAccepted(jobs.length);
    const endMs = performance.now();
    this.#bands.note({ bands, jobs, short: jobs.length === 0, startMs, endMs });
    if (whole) this.#nextWholeMs = endMs + (endMs - startMs) * SHARE;
    return jobs[0];
  }
}

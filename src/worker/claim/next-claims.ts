import { MAX_PRIORITY } from '../../job/limits.ts';
import { type Claim, type ClaimedJob, claimJobs } from '../../queries/claim-jobs.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database, Runner } from '../../sql/executor.ts';
import { Bands } from './bands.ts';

/** Claims from the very start may take one part in this many of the time. */
const SHARE = 20;
/** Beyond this many queues of one database it forgets them all: their names may be without end. */
const MAX_QUEUES = 1_000;
const EVERYTHING = Array.from({ length: MAX_PRIORITY + 1 }, (_, priority) => ({
  priority,
  floorMs: Number.NEGATIVE_INFINITY,
}));

const remembered = new WeakMap<Database, WeakMap<QueueTables, Map<string, NextClaims>>>();

/** The claims of single jobs of one queue, which remember between calls where the last one stopped. */
export class NextClaims {
  readonly #bands = new Bands();
  #nextWholeMs = Number.NEGATIVE_INFINITY;

  /** The one for a queue and some kinds, kept for as long as the app keeps the database. */
  static of(db: Database, tables: QueueTables, queue: string, kinds: readonly string[]): NextClaims {
    const ofDb = remembered.get(db) ?? new WeakMap<QueueTables, Map<string, NextClaims>>();
    remembered.set(db, ofDb);
    const ofTables = ofDb.get(tables) ?? new Map<string, NextClaims>();
    ofDb.set(tables, ofTables);
    const key = JSON.stringify([queue, ...kinds]);
    if (ofTables.size >= MAX_QUEUES && !ofTables.has(key)) ofTables.clear();
    const claims = ofTables.get(key) ?? new NextClaims();
    ofTables.set(key, claims);
    return claims;
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
    const jobs = await claimJobs(runner, tables, { ...claim, bands, limit: 1 });
    const endMs = performance.now();
    this.#bands.note({ bands, jobs, short: jobs.length === 0, startMs, endMs });
    if (whole) this.#nextWholeMs = endMs + (endMs - startMs) * SHARE;
    return jobs[0];
  }
}

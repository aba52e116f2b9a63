import { type Claim, type ClaimedJob, claimJobs, sawTheEnd } from '../../queries/claim-jobs.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import { Bands } from './bands.ts';
import { OverlookedJobs } from './overlooked-jobs.ts';

export interface ClaimsOptions {
  readonly runner: Runner;
  readonly tables: QueueTables;
  readonly queue: string;
  readonly workerId: number;
  readonly kinds: readonly string[];
  /** How long a job is due until it counts as one priority better; `undefined`: that never changes. */
  readonly agingMs: number | undefined;
}

/** What one claim has brought. */
export interface ClaimAnswer {
  readonly jobs: readonly ClaimedJob[];
  /** Whether it was for jobs that are known by their ids, and not for the next ones in order. */
  readonly among: boolean;
  /** When the result came, by the monotonic clock. */
  readonly endMs: number;
  /** Whether jobs are left to be claimed although it brought fewer than it asked for. @default false */
  readonly goesOn?: boolean;
  /** A rate is used up: how long until some of it is free again. */
  readonly waitMs?: number | undefined;
}

/** One queue's claims: of the next jobs from the floors on, and of overlooked ones by id, in fair turns. */
export class Claims {
  readonly #options: ClaimsOptions;
  readonly bands: Bands;
  readonly overlooked: OverlookedJobs;
  /** The next ones in order have their turn now. */
  #tookOverlooked = false;

  constructor(options: ClaimsOptions) {
    this.#options = options;
    this.bands = new Bands(options.agingMs);
    this.overlooked = new OverlookedJobs((place) => this.bands.priorityOf(place, performance.now()));
  }

  /** @throws what the driver throws; then the server may have carried the claim out all the same */
  async next(demand: number, beginning: Claim['beginning']): Promise<ClaimAnswer> {
    const { runner, tables, queue, workerId, kinds } = this.#options;
    const startMs = performance.now();
    const places = this.#tookOverlooked ? [] : this.overlooked.take(demand, this.bands.busyPriority);
    const among = places.length > 0;
    this.#tookOverlooked = among;
    const limit = among ? places.length : demand;
    const bands = this.bands.next(limit, startMs);
    // Named jobs come in no order, so none of them is known to stand before the others.
    const ordered = among && typeof beginning === 'object' ? 0 : beginning;
    const claim = { queue, workerId, kinds, bands, limit, beginning: ordered, fromGoneWorkers: among };
    const ids = among ? places.map(({ id }) => id) : undefined;
    const jobs = await claimJobs(runner, tables, { ...claim, ids }).catch((error: unknown) => {
      // They are where they were, or will be put back there.
      this.overlooked.add(places);
      throw error;
    });
    const endMs = performance.now();
    const short = sawTheEnd(limit, jobs);
    if (!among) this.bands.note({ bands, jobs, short, startMs, endMs });
    else if (!short) this.#addRest(places, jobs);
    return { jobs, among, endMs };
  }

  /** Keeps those that were not claimed: the payloads were too large for one claim. */
  #addRest(places: Parameters<OverlookedJobs['add']>[0], jobs: readonly ClaimedJob[]): void {
    const claimed = new Set(jobs.map(({ id }) => id));
    this.overlooked.add(places.filter(({ id }) => !claimed.has(id)));
  }
}

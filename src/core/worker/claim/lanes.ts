import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import { Lane, type LanesOptions } from './lane.ts';
import type { Sweeper } from './sweeper.ts';

/** What is asked of a job that is due again. */
export type PutBackJob = Pick<ClaimedJob, 'id' | 'kind' | 'priority' | 'runAt'>;

/** The lanes of a queue: one, unless some of its kinds have limits of their own. */
export class Lanes {
  readonly all: readonly Lane[];
  readonly #sweeper: Sweeper;
  readonly #options: LanesOptions;

  /** @param limited the kinds with limits of their own */
  constructor(
    options: LanesOptions,
    sweeper: Sweeper,
    kinds: readonly string[],
    limited: ReadonlySet<string> = new Set(),
  ) {
    const alone = kinds.filter((kind) => limited.has(kind));
    const others = alone.length === 0 ? kinds : kinds.filter((kind) => !limited.has(kind));
    this.all = [
      ...(others.length > 0 ? [new Lane(options, others)] : []),
      ...alone.map((kind) => new Lane(options, [kind], kind)),
    ];
    this.#sweeper = sweeper;
    this.#options = options;
  }

  /** Where a look at all of them together starts. */
  get lowestFloorMs(): number {
    return Math.min(...this.all.map(({ bands }) => bands.lowestFloorMs));
  }

  /** See `Bands.noteNothing`. */
  noteNothing(databaseMs: number, endMs: number): void {
    for (const { bands } of this.all) bands.noteNothing(databaseMs, endMs);
  }

  /** A job is due again in its old place, which the floors have passed. */
  noteBehind({ id, kind, priority, runAt }: PutBackJob): void {
    const lane = this.all.find(({ kinds }) => kinds.includes(kind));
    const isKept = lane?.overlooked.add([{ id, priority, runAtMs: runAt.getTime() }]) ?? false;
    if (!isKept) this.urge('newest first');
    this.#options.wake();
  }

  /** Jobs come. */
  awaken(): void {
    for (const lane of this.all) this.#sweeper.awaken(lane);
  }

  /** Sweeps without delay: see `Sweep.urge`. */
  urge(first?: 'newest first'): void {
    for (const { sweep } of this.all) sweep.urge(first);
    this.awaken();
  }

  /** For a worker that begins: it must not rely on an earlier sweep. Peers go on sweeping for all. */
  sweepFirst(): void {
    if (this.#sweeper.hasPeers) this.awaken();
    else this.urge();
  }

  /** For a drain: goes on sweeping until enough is found, or to the end; returns whether it got there. */
  async sweepNow(signal: AbortSignal): Promise<boolean> {
    for (const lane of this.all) if (!(await this.#sweeper.sweepNow(lane, signal))) return false;
    return true;
  }
}

import type { JobPlace } from '../../queries/find-overlooked.ts';
import { Lane, type LanesLoop } from './lane.ts';
import type { Sweeper } from './sweeper.ts';

/** The lanes of a queue: one, unless some of its kinds have limits of their own. */
export class Lanes {
  readonly all: readonly Lane[];
  readonly #sweeper: Sweeper;

  /** @param limited the kinds with limits of their own */
  constructor(
    loop: LanesLoop,
    sweeper: Sweeper,
    kinds: readonly string[],
    limited: ReadonlySet<string> = new Set(),
  ) {
    const alone = kinds.filter((kind) => limited.has(kind));
    const others = alone.length === 0 ? kinds : kinds.filter((kind) => !limited.has(kind));
    this.all = [
      ...(others.length > 0 ? [new Lane(loop, others)] : []),
      ...alone.map((kind) => new Lane(loop, [kind], kind)),
    ];
    this.#sweeper = sweeper;
  }

  /** Where a look at all of them together starts. */
  get lowestFloorMs(): number {
    return Math.min(...this.all.map(({ bands }) => bands.lowestFloorMs));
  }

  /** See `Bands.noteNothing`. */
  noteNothing(databaseMs: number, endMs: number): void {
    for (const { bands } of this.all) bands.noteNothing(databaseMs, endMs);
  }

  /** Keeps the place of a job that lies behind the floors; returns whether there was room for it. */
  expect(kind: string, place: JobPlace): boolean {
    const lane = this.all.find(({ kinds }) => kinds.includes(kind));
    return lane?.overlooked.add([place]) ?? false;
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

  /** For a drain: sweeps until enough is found, or to the end; returns whether it got there. */
  async sweepNow(signal: AbortSignal): Promise<boolean> {
    for (const lane of this.all) if (!(await this.#sweeper.sweepNow(lane, signal))) return false;
    return true;
  }
}

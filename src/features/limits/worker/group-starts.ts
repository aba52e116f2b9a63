import type { BeginTime } from '../../../core/sql/claimed-job.ts';
import { type StartTimes, startWithinMs } from '../sql/start-time.ts';
import { Stretch } from './stretch.ts';

/** A worker begins within this time what it has claimed ahead, or within so many round trips. */
const AHEAD_MS = 50;
const ROUND_TRIPS = 4;
/** Until it knows how long these take: the first one may open a connection. */
const UNKNOWN_MS = 3_600_000;
/** Jobs of batch handlers begin when others have gathered, which may take many windows. */
const MAX_STRETCH = 2 ** 20;

/**
 * When the jobs of one queue's groups may begin where a group has a rate: soon after their claim, whose
 * statement counts them until then and a window more. A job that has not begun by then is put back, and the
 * next claims give their jobs more time. So no window sees more handlers begin than the rate of the group
 * says, whatever becomes of a statement or its answer.
 */
export class GroupStarts {
  /** Whether groups are known to have rates: until then claims take none of such a group. */
  areKnown: boolean;
  readonly #stretch = new Stretch(MAX_STRETCH);

  /** @param areDeclared whether the code declares a rate; one may also be set at run time */
  constructor(areDeclared: boolean) {
    this.areKnown = areDeclared;
  }

  /** Those of a claim that is sent now; `undefined` for one that takes none of groups with a rate. */
  ofClaim(): ClaimStarts | undefined {
    if (!this.areKnown) return undefined;
    const { now: stretch, roundTripMs } = this.#stretch;
    const neededMs = roundTripMs === 0 ? UNKNOWN_MS : Math.max(AHEAD_MS, ROUND_TRIPS * roundTripMs);
    const sentMs = performance.now();
    const times = new Map<number, BeginTime>();
    const beginTime = (perMs: number): BeginTime => {
      const untilMs = sentMs + startWithinMs(perMs, { neededMs, stretch });
      const time = times.get(perMs) ?? new GroupBeginTime(untilMs, () => this.#stretch.noteLate(stretch));
      times.set(perMs, time);
      return time;
    };
    return { neededMs, stretch, sentMs, beginTime };
  }

  /** The claim was answered. */
  noteAnswer({ sentMs }: ClaimStarts): void {
    this.#stretch.noteAnswer(performance.now() - sentMs);
  }
}

/** When the jobs of one claim may begin: those of groups with the same window until the same time. */
interface ClaimStarts extends StartTimes {
  /** From when on the times count, so no delay of the answer lengthens them. */
  readonly sentMs: number;
}

/** A class, since listeners see the job: one that clones it gets the time, and no function. */
class GroupBeginTime implements BeginTime {
  readonly untilMs: number;
  readonly #onMissed: () => void;

  constructor(untilMs: number, onMissed: () => void) {
    this.untilMs = untilMs;
    this.#onMissed = onMissed;
  }

  onMissed(): void {
    this.#onMissed();
  }
}

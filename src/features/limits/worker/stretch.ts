/** How much a round trip moves the average. */
const LEARN = 0.2;
/** An outlier (a process or a network stood still) counts as at most this many times the average. */
const OUTLIER = 4;
/** How much longer starts are kept after some were void before they could be spent; then less and less. */
const FACTOR = 2;
const RELAX = 0.95;

/** How long answers take, and by what the time to spend starts is stretched because it was too short. */
export class Stretch {
  readonly #most: number;
  #roundTripMs = 0;
  #now = 1;

  /** @param most the most by which the time is ever stretched */
  constructor(most: number) {
    this.#most = most;
  }

  /** The average of the last few. */
  get roundTripMs(): number {
    return this.#roundTripMs;
  }

  get now(): number {
    return this.#now;
  }

  /** Starts have come in so much time. */
  noteAnswer(ms: number): void {
    const known = this.#roundTripMs;
    this.#roundTripMs = known === 0 ? ms : known + (Math.min(ms, OUTLIER * known) - known) * LEARN;
    this.#now = Math.max(1, this.#now * RELAX);
  }

  /** Starts that were asked for with such a stretch were void before they could be spent. */
  noteLate(stretch: number): void {
    this.#now = Math.max(this.#now, Math.min(stretch * FACTOR, this.#most));
  }
}

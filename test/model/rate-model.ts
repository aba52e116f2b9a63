/** A start that counts against a rate, with the times between which it was. */
interface Start {
  /** Its cost, or the limit when it started, if that is less. */
  readonly cost: number;
  readonly fromUs: number;
  readonly toUs: number;
}

/** The most that a start may count on beyond its window: a twentieth of the longest one in a walk. */
const SLACK_MS = 480_000;

/** What has started by one rate: of a queue, a kind or a group. */
export class RateModel {
  /** Since the rate was in force. */
  #starts: Start[] = [];
  readonly #all: Start[] = [];

  add(start: Start): void {
    this.#starts.push(start);
    this.#all.push(start);
  }

  /** It was undone. */
  remove(start: Start): void {
    this.#starts = this.#starts.filter((other) => other !== start);
  }

  /** There is no such rate now: what has started without one counts for nothing. */
  forget(): void {
    this.#starts = [];
  }

  /** What started before then counts no longer. */
  forgetBefore(us: number): void {
    this.#starts = this.#starts.filter(({ fromUs }) => fromUs >= us);
  }

  /** The least that has started in the window that ends at a time. */
  least({ limit, perMs }: { readonly limit: number; readonly perMs: number }, untilUs: number): number {
    return this.#starts
      .filter(({ fromUs }) => untilUs - fromUs < perMs * 1_000)
      .reduce((sum, { cost }) => sum + Math.min(cost, limit), 0);
  }

  /** The most that may count against the rate at a time. */
  most({ perMs }: { readonly perMs: number }, atUs: number): number {
    return this.#all
      .filter(({ toUs }) => atUs - toUs < (perMs + SLACK_MS) * 1_000)
      .reduce((sum, { cost }) => sum + cost, 0);
  }
}

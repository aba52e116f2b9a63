/** The keys that outlive a job, each for a time. */
export class KeyModel {
  /** The times before which each of them was taken, in microseconds since 1970, and for how long. */
  readonly #until = new Map<string, number>();

  /** Times in a walk are far from each other, but for those of one step. */
  isTaken(key: readonly string[], nowUs: number): boolean {
    return (this.#until.get(JSON.stringify(key)) ?? 0) > nowUs;
  }

  take(key: readonly string[], nowUs: number, forMs: number): void {
    this.#until.set(JSON.stringify(key), nowUs + forMs * 1_000);
  }
}

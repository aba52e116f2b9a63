/** What has happened, for the one that asks for it: a batch at a time, so that none of it makes a promise. */
export class News<T> {
  #news: T[] = [];
  #tell: (() => void) | undefined;

  add(one: T): void {
    this.#news.push(one);
    this.#tell?.();
    this.#tell = undefined;
  }

  /** Resolves with all that is new, a moment after the first of it. */
  async next(): Promise<readonly T[]> {
    if (this.#news.length === 0) {
      await new Promise<void>((resolve) => {
        this.#tell = resolve;
      });
    }
    const news = this.#news;
    this.#news = [];
    return news;
  }
}

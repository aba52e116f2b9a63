/**
 * Things in no order, thousands of which come and go each second. A `Set` is rebuilt all the time then, and
 * each table that it has left refers to what was in it and to the table after it. Once one is old to the
 * garbage collector, that keeps all of these until its next full run.
 */
export class Bag<K extends string, T extends Record<K, number>> implements Iterable<T> {
  readonly #key: K;
  /** Never made shorter, for the same reason. */
  readonly #things: (T | undefined)[] = [];
  #size = 0;

  /** @param key where a thing keeps its place in this bag; -1 as long as it has none */
  constructor(key: K) {
    this.#key = key;
  }

  get size(): number {
    return this.#size;
  }

  has(thing: T): boolean {
    const place = thing[this.#key];
    return place >= 0 && this.#things[place] === thing;
  }

  add(thing: T): void {
    if (!this.has(thing)) this.#put(thing, this.#size++);
  }

  delete(thing: T): void {
    if (!this.has(thing)) return;
    const last = this.#things[--this.#size];
    this.#things[this.#size] = undefined;
    if (last !== undefined && last !== thing) this.#put(last, thing[this.#key]);
  }

  /** What is in it now: what is added or deleted meanwhile changes nothing. */
  [Symbol.iterator](): Iterator<T> {
    return this.#things
      .slice(0, this.#size)
      .filter((thing) => thing !== undefined)
      [Symbol.iterator]();
  }

  #put(thing: T, place: number): void {
    const placed: Record<K, number> = thing;
    placed[this.#key] = place;
    this.#things[place] = thing;
  }
}

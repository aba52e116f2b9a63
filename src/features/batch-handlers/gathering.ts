import type { BatchHandler } from '../../core/worker/run/handler.ts';

interface Waiting<T> {
  readonly attempt: T;
  readonly sinceMs: number;
}

export interface GatheringOptions {
  readonly handler: BatchHandler;
  readonly maxSize: number;
  /** Whether one of them may have killed a worker. */
  readonly afterDeath: boolean;
  /** Called when the first has waited for `maxWaitMs`. */
  readonly onDue: () => void;
}

/** Attempts that wait until they are enough for one batch, or the first of them has waited long enough. */
export class Gathering<T> {
  readonly #options: GatheringOptions;
  #waiting: Waiting<T>[] = [];
  /** How many, from the first on, wait no longer, and since when. */
  #due = 0;
  #dueMs = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: GatheringOptions) {
    this.#options = options;
  }

  get handler(): BatchHandler {
    return this.#options.handler;
  }

  get afterDeath(): boolean {
    return this.#options.afterDeath;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** How many batches they are: less than one until the first is full. */
  get fill(): number {
    return this.size / this.#options.maxSize;
  }

  get first(): T | undefined {
    return this.#waiting[0]?.attempt;
  }

  get attempts(): T[] {
    return this.#waiting.map(({ attempt }) => attempt);
  }

  get isReady(): boolean {
    return this.size >= this.#options.maxSize || this.#due > 0;
  }

  /** Since when a batch has waited for a slot alone, by the monotonic clock; `Infinity` if none does. */
  get readySinceMs(): number {
    const last = this.#waiting[this.#options.maxSize - 1];
    return Math.min(
      last?.sinceMs ?? Number.POSITIVE_INFINITY,
      this.#due > 0 ? this.#dueMs : Number.POSITIVE_INFINITY,
    );
  }

  add(attempt: T): void {
    this.#waiting.push({ attempt, sinceMs: performance.now() });
    this.#watch();
  }

  /** The jobs that the next batch would take. */
  get nextBatch(): T[] {
    return this.#waiting.slice(0, this.#options.maxSize).map(({ attempt }) => attempt);
  }

  /** Takes the next batch, or the first jobs of it. */
  take(most = this.#options.maxSize): T[] {
    const taken = this.#waiting.splice(0, most);
    this.#due = Math.max(0, this.#due - taken.length);
    this.#rewatch();
    return taken.map(({ attempt }) => attempt);
  }

  drop(dropped: ReadonlySet<T>): void {
    this.#waiting = this.#waiting.filter(({ attempt }) => !dropped.has(attempt));
    this.#due = Math.min(this.#due, this.size);
    this.#rewatch();
  }

  /** The jobs that are here now wait no longer. */
  flush(): void {
    this.#makeDue(this.size);
    this.#rewatch();
  }

  #makeDue(size: number): void {
    if (this.#due === 0) this.#dueMs = performance.now();
    this.#due = Math.max(this.#due, size);
  }

  #rewatch(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#watch();
  }

  #watch(): void {
    const [first] = this.#waiting;
    if (first === undefined || this.#due > 0 || this.#timer !== undefined) return;
    const leftMs = first.sinceMs + this.#options.handler.batch.maxWaitMs - performance.now();
    if (leftMs <= 0) {
      this.#makeDue(1);
      return;
    }
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#makeDue(1);
      this.#options.onDue();
    }, leftMs);
  }
}

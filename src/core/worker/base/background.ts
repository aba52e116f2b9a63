import { allowManyListeners } from '../../runtime.ts';
import { resolvesWithin } from '../../time/resolves-within.ts';
import type { WorkerEmitter } from './events.ts';

/** A part of a worker that runs beside its claims, such as its heartbeat, pruning or listening. */
export interface BackgroundPart {
  /** Runs until the signal is aborted; resolves once no timer, statement or connection of it is left. */
  run(signal: AbortSignal): Promise<void>;
}

/** All that runs beside a worker's claims, ended and awaited together so that nothing outlives it. */
export class Background {
  readonly #events: WorkerEmitter;
  readonly #ending = new AbortController();
  #over: Promise<unknown> = Promise.resolve();
  #hasFailed = false;

  constructor(events: WorkerEmitter) {
    this.#events = events;
    // Each part listens to the one signal, and Node.js warns of more than ten listeners.
    allowManyListeners(this.#ending.signal);
  }

  /** Whether a part has ended before its time, so that the worker is not whole any more. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Starts the parts. What one of them throws is an `error` event; the others go on. */
  start(parts: readonly BackgroundPart[]): void {
    const runs = parts.map((part) => this.#run(part));
    this.#over = Promise.all([this.#over, ...runs]);
  }

  /** Ends all parts; returns whether they ended within `ms` milliseconds: a silent database may hold one. */
  async end(ms: number): Promise<boolean> {
    this.#ending.abort();
    return await resolvesWithin(this.#over, ms);
  }

  async #run(part: BackgroundPart): Promise<void> {
    try {
      await part.run(this.#ending.signal);
    } catch (error) {
      this.#hasFailed = true;
      this.#events.emit('error', { error, during: 'running in the background' });
    }
  }
}

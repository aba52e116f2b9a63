import { setMaxListeners } from 'node:events';
import type { WorkerEmitter } from './attempt/events.ts';
import { resolvesWithin } from './time/resolves-within.ts';

/** Something of a worker that runs beside its claims: its heartbeat, its pruning, its listening. */
export interface BackgroundPart {
  /**
   * Runs until the signal is aborted. Resolves when nothing of it runs any more: no timer, no statement, no
   * connection.
   */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * All that runs beside the claims of one worker. It is ended and awaited together, so nothing outlives the
 * worker.
 */
export class Background {
  readonly #events: WorkerEmitter;
  readonly #ending = new AbortController();
  #over: Promise<unknown> = Promise.resolve();

  constructor(events: WorkerEmitter) {
    this.#events = events;
    // Each part listens to the one signal, and Node.js warns of more than ten listeners.
    setMaxListeners(0, this.#ending.signal);
  }

  /** Starts the parts. What one of them throws is an `error` event; the others go on. */
  start(parts: readonly BackgroundPart[]): void {
    const runs = parts.map((part) => this.#run(part));
    this.#over = Promise.all([this.#over, ...runs]);
  }

  /**
   * Ends all parts, and waits for them, at most `ms` milliseconds: a part may wait for a database that does
   * not answer. Returns whether they have ended.
   */
  async end(ms: number): Promise<boolean> {
    this.#ending.abort();
    return await resolvesWithin(this.#over, ms);
  }

  async #run(part: BackgroundPart): Promise<void> {
    try {
      await part.run(this.#ending.signal);
    } catch (error) {
      this.#events.emit('error', { error, during: 'running in the background' });
    }
  }
}

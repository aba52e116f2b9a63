import { beatWorker } from '../queries/beat-worker.ts';
import type { Database } from '../queries/executor.ts';
import { registerWorker } from '../queries/register-worker.ts';
import { removeSilentWorkers } from '../queries/remove-silent-workers.ts';
import { removeWorker } from '../queries/remove-worker.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { pause } from './pause.ts';
import type { WorkerEmitter } from './worker-events.ts';

/** How often a worker says that it is alive. */
export const HEARTBEAT_MS = 5_000;

export interface LivenessOptions {
  readonly db: Database;
  readonly tables: QueueTables;
  readonly name: string;
  readonly queues: readonly string[];
  /** A worker that has not been seen for so long is gone. */
  readonly silentMs: number;
  readonly events: WorkerEmitter;
  /** Called when this worker had been declared gone: others may have claimed its jobs. */
  readonly onDeclaredGone: () => Promise<void>;
}

/**
 * Keeps a worker's row in `queue_workers` fresh, and removes the rows of workers that have fallen silent, whose jobs are then
 * due again for the next sweep. Every worker watches all others; there is no leader.
 */
export class Liveness {
  readonly #options: LivenessOptions;
  readonly #stopping = new AbortController();
  #workerId: number | undefined;
  #beating: Promise<void> = Promise.resolve();

  constructor(options: LivenessOptions) {
    this.#options = options;
  }

  /** Registers; answers the worker's id. */
  async start(): Promise<number> {
    const { db, tables, name, queues } = this.#options;
    const id = await registerWorker(db, tables, { name, queues });
    this.#workerId = id;
    this.#beating = this.#beat(id);
    return id;
  }

  /** Takes the worker out of the living. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#beating;
    if (this.#workerId !== undefined)
      await removeWorker(this.#options.db, this.#options.tables, this.#workerId);
  }

  async #beat(id: number): Promise<void> {
    const { db, tables, name, queues, silentMs, events, onDeclaredGone } = this.#options;
    while (!this.#stopping.signal.aborted) {
      try {
        if (await beatWorker(db, tables, { id, name, queues })) await onDeclaredGone();
        // After the own beat: a worker that was asleep must not declare others gone before it has shown itself.
        await removeSilentWorkers(db, tables, silentMs);
      } catch (error) {
        events.emit('error', { error, during: 'the heartbeat' });
      }
      await pause(HEARTBEAT_MS, this.#stopping.signal);
    }
  }
}

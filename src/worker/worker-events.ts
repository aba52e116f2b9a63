import { EventEmitter } from 'node:events';
import type { ClaimedJob } from '../queries/claim-jobs.ts';

/** What a worker announces, always after it is written. */
export interface WorkerEvents {
  /** The worker is registered and claims. */
  started: [{ readonly workerId: number; readonly name: string; readonly queues: readonly string[] }];
  /** A claim came back with jobs. */
  claimed: [{ readonly queue: string; readonly count: number; readonly durationMs: number }];
  /** A job has ended well. */
  completed: [{ readonly job: ClaimedJob; readonly durationMs: number }];
  /** An attempt has failed. `retryInMs` is undefined when the job is discarded. */
  failed: [{ readonly job: ClaimedJob; readonly error: unknown; readonly retryInMs: number | undefined }];
  /** A job has ended badly: no attempt is left, or a NonRetryableError was thrown. */
  discarded: [{ readonly job: ClaimedJob; readonly error: unknown }];
  /** A handler has asked for later. */
  snoozed: [{ readonly job: ClaimedJob; readonly delayMs: number }];
  /** A handler has asked for the end. */
  cancelled: [{ readonly job: ClaimedJob; readonly reason: string }];
  /** The worker stopped before the handler ended; the job is due again. */
  interrupted: [{ readonly job: ClaimedJob }];
  /** An attempt ended, but its job was no longer held by this worker, so nothing was written. */
  lost: [{ readonly job: ClaimedJob }];
  /** No due job was found in a queue, and none is running. */
  idle: [{ readonly queue: string }];
  /** Something of the worker's own failed, such as a query; it goes on. Printed to stderr when nobody listens. */
  error: [{ readonly error: unknown; readonly during: string }];
  /** The worker has stopped: nothing of it runs any more. */
  stopped: [];
}

/** The events of one worker. */
export class WorkerEmitter {
  readonly #emitter = new EventEmitter<WorkerEvents>();

  on<K extends keyof WorkerEvents>(event: K, listener: (...args: WorkerEvents[K]) => void): void {
    // The emitter's own type is a conditional one that does not resolve for a generic K.
    this.#emitter.on(event, listener as never);
  }

  off<K extends keyof WorkerEvents>(event: K, listener: (...args: WorkerEvents[K]) => void): void {
    this.#emitter.off(event, listener as never);
  }

  /** A listener that throws must not harm the worker: its error is reported as the worker's own. */
  emit<K extends keyof WorkerEvents>(event: K, ...args: WorkerEvents[K]): void {
    try {
      if (event === 'error' && this.#emitter.listenerCount('error') === 0) {
        console.error('drizzle-queue worker:', ...args);
        return;
      }
      this.#emitter.emit(event, ...(args as never));
    } catch (error) {
      if (event === 'error') console.error('drizzle-queue worker: an error listener threw', error);
      else this.emit('error', { error, during: `a listener of '${event}'` });
    }
  }
}

import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Retries } from '../time/retries.ts';
import type { WorkerEmitter } from './base/events.ts';
import type { Until } from './base/until.ts';
import type { Listener } from './presence/listener.ts';
import type { ServedQueue } from './served-queues.ts';
import type { Statements } from './statements/statements.ts';

export interface HostWorker {
  readonly statements: Pick<Statements, 'of'>;
  /** With what is known of the server. */
  readonly tables: QueueTables;
  readonly workerId: number;
  readonly servedQueues: ReadonlyMap<string, ServedQueue>;
  readonly kinds: readonly string[];
  readonly events: WorkerEmitter;
  /** There may be something to claim in this queue. */
  readonly wake: (queue: string) => void;
  readonly listener: Pick<Listener, 'listening'>;
  readonly retries: Pick<Retries, 'sleep'>;
  /** `'empty'`: it waits for nothing. */
  readonly until: Until;
}

import { Channel, type ProvenConnection } from '../../drivers/channel.ts';
import { isPoolEnded } from '../../drivers/ended-pool.ts';
import type { Listen } from '../../drivers/listen.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import { OTHERS_NOTIFY, wakeChannel } from '../../sql/wake-channel.ts';
import type { Retries } from '../../time/retries.ts';
import type { BackgroundPart } from '../base/background.ts';
import type { WorkerEmitter } from '../base/events.ts';

export interface ListenerOptions {
  readonly db: Runner;
  readonly tables: QueueTables;
  /** How the driver listens; `undefined` when it cannot, or must not. */
  readonly listen: Listen | undefined;
  readonly events: WorkerEmitter;
  readonly retries: Retries;
  /**
   * A job was enqueued into this queue; `undefined`: perhaps into any, as notifications may be missed.
   *
   * @param othersNotify whether other enqueues notify as well for now
   */
  readonly onWake: (queue: string | undefined, othersNotify?: boolean) => void;
  /** Called when it must poll: what asks seldom while notifications arrive has to ask more often. */
  readonly onPolling?: () => void;
  /** Called with each connection on which notifications come back and statements can run. */
  readonly onProven?: (connection: ProvenConnection) => void;
  /** Called when none is to be expected: the driver has none, must not listen, or hears nothing. */
  readonly onUnproven?: () => void;
  /** Called when the connection was closed together with the pool, which the app has ended. */
  readonly onPoolEnded?: (error: unknown) => void;
}

const NOT_HEARD =
  'A test notification did not reach this worker, so it polls. ' +
  'Notifications do not work behind PgBouncer in transaction mode: set listen: false';

/**
 * Hears of enqueued jobs on one connection for all queues of a worker. Only a hint: while nothing is heard
 * the worker polls.
 */
export class Listener implements BackgroundPart {
  readonly #options: ListenerOptions;
  readonly #channel: Channel | undefined;

  constructor(options: ListenerOptions) {
    this.#options = options;
    const { tables, listen, events, onWake } = options;
    this.#channel =
      listen &&
      new Channel({
        ...options,
        name: wakeChannel(tables),
        listen,
        notHeard: NOT_HEARD,
        onReady: () => onWake(undefined),
        onNotify: (payload) => {
          // Also a queue may have such a name.
          onWake(payload);
          if (payload.startsWith(OTHERS_NOTIFY)) onWake(payload.slice(OTHERS_NOTIFY.length), true);
        },
        onHeard: () => events.emit('listening'),
        onLost: (error, { first, heard }) => {
          if (isPoolEnded(error)) return this.#options.onPoolEnded?.(error);
          // Once per outage, not for every try to end it.
          if (first) events.emit('error', { error, during: 'listening' });
          if (first || heard) this.#announcePolling(error);
        },
      });
  }

  /** Whether notifications are known to arrive. */
  get listening(): boolean {
    return this.#channel?.heard ?? false;
  }

  async run(signal: AbortSignal): Promise<void> {
    if (this.#channel !== undefined) return await this.#channel.run(signal);
    this.#options.onUnproven?.();
    this.#announcePolling(undefined);
  }

  #announcePolling(error: unknown): void {
    this.#options.onPolling?.();
    this.#options.events.emit('polling', { error });
  }
}

import type { Runner } from '../sql/executor.ts';

/** The very connection that listens, for as long as it lasts. */
export interface ListeningConnection {
  /** Runs statements on it; rejects once it is lost. */
  readonly runner: Runner;
  /** Closes a connection that seems dead. All who listen on it see an ordinary loss. */
  destroy(reason: unknown): void;
}

export interface ListenEvents {
  /**
   * It listens, perhaps again: what was notified before this moment may have been missed.
   *
   * @param connection `undefined` where the driver has no way to run statements on the connection that
   * listens, or silently reconnects by itself
   */
  ready(connection?: ListeningConnection): void;
  notify(payload: string): void;
}

/**
 * Listens on one connection of its own, beside the app's pool, until the signal is aborted: then it resolves,
 * without waiting for a server that does not answer, and reports nothing more. Rejects when the connection
 * cannot be made or is lost; the caller tries again.
 *
 * @param channel only `[a-z0-9_]`: not every driver quotes it
 */
export type Listen = (channel: string, events: ListenEvents, signal: AbortSignal) => Promise<void>;

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

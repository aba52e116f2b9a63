import type { SQLWrapper } from 'drizzle-orm';

export interface SentStatement {
  /** What the driver makes of the answer. On a connection that has died without a word it never settles. */
  readonly answer: PromiseLike<unknown>;
  /**
   * Stops waiting for the answer. The connection is closed where the driver hands it out; a statement that
   * has no connection yet is withdrawn.
   *
   * @returns whether the server may carry it out all the same, or may already have done so
   */
  abandon(reason: Error): boolean;
}

/** Sends a worker's statements, one connection of the app's pool for each. */
export interface Sender {
  /** Whether it can prepare what it sends, so that Postgres may keep a plan. */
  readonly prepares: boolean;
  /** @param prepared whether to prepare it, where the driver can and the server has not refused to */
  send(query: SQLWrapper, prepared: boolean): SentStatement;
  /**
   * After an answer that did not come: closes the idle connections of the pool that are as silent, where the
   * driver hands them out. Resolves when a connection of the pool has answered, or was refused. Never
   * rejects.
   *
   * @param over aborted when the worker has ended
   */
  heal(over: AbortSignal): Promise<void>;
}

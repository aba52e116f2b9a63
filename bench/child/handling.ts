import type { Stage } from './programs.ts';

/** What the handler of a job does, beside being counted. */
export interface Handling {
  /** How long it waits. @default 0 */
  readonly waitMs?: number;
  /** Over how many connections the handlers insert an order each, in transactions of their own. @default they insert none */
  readonly orderConnections?: number;
}

/** What an app would do in the handlers of a queue that does not know the app's database. */
export interface AppHandler {
  /** Resolves, or is over at once, when the job is done. */
  handle(n: number): Promise<void> | void;
  close(): Promise<void>;
}

/** A wait of the app; a timer of Node.js is up to a millisecond late. */
export function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export async function openHandler(
  { url, onJob }: Stage,
  { waitMs = 0, orderConnections = 0 }: Handling = {},
): Promise<AppHandler> {
  if (orderConnections > 0) {
    // Loaded when asked for: a peer's memory is its own.
    const { connectApp, insertOrder } = await import('./orders.ts');
    const { db, close } = connectApp(url, orderConnections);
    return {
      async handle(n) {
        await db.transaction((tx) => insertOrder(tx));
        onJob(n);
      },
      close,
    };
  }
  return {
    handle: waitMs > 0 ? (n) => wait(waitMs).then(() => onJob(n)) : onJob,
    close: async () => undefined,
  };
}

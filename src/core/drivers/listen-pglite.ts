import { aborted, type Listen } from './listen.ts';

export interface PGliteClient {
  listen(channel: string, callback: (payload: string) => void): Promise<() => Promise<void>>;
}

/**
 * Listens on PGlite's one connection, which is in this process and cannot be lost. So it carries no session:
 * all workers share it, and none can die without the database.
 */
export function listenByPGlite(client: PGliteClient): Listen {
  return async (channel, events, signal) => {
    const unlisten = await client.listen(channel, (payload) => {
      if (!signal.aborted) events.notify(payload);
    });
    if (!signal.aborted) events.ready();
    await aborted(signal);
    // Not awaited: a handler's transaction may hold the connection. It fails when PGlite is closed, which
    // also ends the listening.
    unlisten().catch(() => undefined);
  };
}

import { aborted, type Listen } from './listen.ts';

/** What is used of PGlite. */
export interface PGliteClient {
  listen(channel: string, callback: (payload: string) => void): Promise<() => Promise<void>>;
}

/**
 * Listens on the one connection that PGlite has: it is in this process, and cannot be lost. So it carries no session either: all
 * workers share it, and none of them can die without the database.
 */
export function listenByPGlite(client: PGliteClient): Listen {
  return async (channel, events, signal) => {
    const unlisten = await client.listen(channel, (payload) => {
      if (!signal.aborted) events.notify(payload);
    });
    if (!signal.aborted) events.ready();
    await aborted(signal);
    // Not waited for: a handler's transaction may have the connection. And it fails when PGlite is closed, which is as good.
    unlisten().catch(() => undefined);
  };
}

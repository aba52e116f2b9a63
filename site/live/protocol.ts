/** What a page's connections say to its database, and what it answers, each in one message of a port. */

/** The types whose text Drizzle reads by itself. */
export type RawTypes = readonly number[];

export type Request = { readonly id: number } & (
  | {
      readonly type: 'query';
      readonly text: string;
      readonly params: readonly unknown[];
      readonly rowMode: 'array' | 'object';
      readonly raw: RawTypes;
      /** The transaction that it belongs to. */
      readonly within: number | undefined;
    }
  /** Statements without parameters, as a migration has. */
  | { readonly type: 'exec'; readonly text: string }
  /** Opens the transaction that later requests name by this one's id. */
  | { readonly type: 'begin' }
  | { readonly type: 'end'; readonly transaction: number; readonly commit: boolean }
  | { readonly type: 'listen'; readonly channel: string }
  | { readonly type: 'unlisten'; readonly channel: string }
);

export type Answer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: Readonly<Record<string, unknown>> }
  | { readonly channel: string; readonly payload: string };

/** What the page says to the database's worker, as an operating system would. */
export type Control =
  /** A connection is made: `port` comes with the message. */
  | { readonly type: 'connected'; readonly connection: number; readonly port: MessagePort }
  /** Its other end is gone, with or without a goodbye. */
  | { readonly type: 'disconnected'; readonly connection: number };

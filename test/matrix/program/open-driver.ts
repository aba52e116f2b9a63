import type { Database } from 'drizzle-queue';
import type { QueryBuilders } from 'drizzle-queue/skip-locked';
import type { Need } from '../../integration/behaviours/behaviour.ts';
import type { Driver, Drizzle } from '../combinations.ts';

/** A database of one driver, with the library's tables. */
export interface OpenDriver {
  readonly db: Database & QueryBuilders;
  readonly offers: readonly Need[];
  close(): Promise<unknown>;
}

/** Where to connect to. */
export interface Place {
  /** The oldest takes its client by itself, and not as an option. */
  readonly drizzle: Drizzle;
  /** The URL of the database. */
  readonly url: string;
  /** `host:port` of what stands for Neon's side of its drivers. */
  readonly neon: string;
  /** The statements that create the library's tables, for a database that is made here. */
  readonly migrations: readonly string[];
}

const CONNECTIONS = 6;
const FULL = ['transactions', 'connections', 'listening', 'session', 'server'] as const;

/** Opens a driver as an app would; loads no other. */
export const openDriver: Readonly<Record<Driver, (place: Place) => Promise<OpenDriver>>> = {
  'postgres.js': async ({ url, drizzle: version }) => {
    const { default: postgres } = await import('postgres');
    const { drizzle } = await import('drizzle-orm/postgres-js');
    // A connection that broke in the middle of a write needs some ten tries, each of which waits for so many seconds.
    const client = postgres(url, { max: CONNECTIONS, connect_timeout: 3, onnotice: () => undefined });
    // Without the timeout it waits for ever for a connection that was lost in the middle of a statement.
    return {
      db: version === '0.34' ? drizzle(client) : drizzle({ client }),
      offers: FULL,
      close: () => client.end({ timeout: 5 }),
    };
  },
  'node-postgres': async ({ url, drizzle: version }) => {
    const { default: pg } = await import('pg');
    const { drizzle } = await import('drizzle-orm/node-postgres');
    const client = new pg.Pool({ connectionString: url, max: CONNECTIONS });
    client.on('error', () => undefined);
    return {
      db: version === '0.34' ? drizzle(client) : drizzle({ client }),
      offers: FULL,
      close: () => client.end(),
    };
  },
  'neon-serverless': async ({ url, neon, drizzle: version }) => {
    const { neonConfig, Pool } = await import('@neondatabase/serverless');
    const { drizzle } = await import('drizzle-orm/neon-serverless');
    // From Node.js 22 on there is one without a package.
    neonConfig.webSocketConstructor = globalThis.WebSocket ?? (await import('ws')).default;
    neonConfig.wsProxy = (host, port) => `${neon}/v2?address=${host}:${port}`;
    neonConfig.useSecureWebSocket = false;
    neonConfig.pipelineConnect = false;
    const client = new Pool({ connectionString: withPassword(url), max: CONNECTIONS });
    client.on('error', () => undefined);
    return {
      db: version === '0.34' ? drizzle(client) : drizzle({ client }),
      offers: FULL,
      close: () => client.end(),
    };
  },
  'neon-http': async ({ url, neon: endpoint }) => {
    const { neon, neonConfig } = await import('@neondatabase/serverless');
    const { drizzle } = await import('drizzle-orm/neon-http');
    neonConfig.fetchEndpoint = `http://${endpoint}/sql`;
    const client = neon(withPassword(url));
    return {
      db: drizzle({ client }),
      offers: ['no transactions', 'batches', 'connections', 'no listening'],
      close: async () => undefined,
    };
  },
  PGlite: async ({ migrations, drizzle: version }) => {
    const { PGlite } = await import('@electric-sql/pglite');
    const { drizzle } = await import('drizzle-orm/pglite');
    const client = new PGlite();
    for (const statements of migrations) await client.exec(statements);
    return {
      db: version === '0.34' ? drizzle(client) : drizzle({ client }),
      offers: ['transactions', 'listening'],
      close: () => client.close(),
    };
  },
  'Bun SQL': async ({ url }) => {
    const { drizzle } = await import('drizzle-orm/bun-sql');
    const db = drizzle({ connection: { url, max: CONNECTIONS } });
    // Its types are Bun's own, which are not installed.
    const client = db.$client as unknown as { close(): Promise<void> };
    // Bun's connection that listens runs nothing else.
    const offers = FULL.filter((need) => need !== 'session');
    return { db, offers: [...offers, 'no session'], close: () => client.close() };
  },
};

/** Neon's drivers insist on one. */
export function withPassword(url: string): string {
  const changed = new URL(url);
  if (changed.password === '') changed.password = 'none';
  return changed.href;
}

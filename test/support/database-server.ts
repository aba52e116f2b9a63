import { type PostgresOptions, startPostgres } from './embedded-postgres.ts';

/** A server that databases can be created on. */
export interface DatabaseServer {
  /** The URL of a database on it, with a role that may create databases. */
  readonly url: string;
  /** Gives the server up. */
  stop(): Promise<void>;
}

/** The server that the environment variable DATABASE_URL names, or else one started with `options`. */
export async function databaseServer(options?: PostgresOptions): Promise<DatabaseServer> {
  const url = process.env.DATABASE_URL;
  if (!url) return startPostgres(options);
  return { url, stop: async () => {} };
}

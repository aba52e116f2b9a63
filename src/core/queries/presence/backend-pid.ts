import { type SQL, sql } from 'drizzle-orm';

/** Which process of the server runs it: behind a pooler another than the one that the driver was told. */
export const backendPidQuery: SQL = sql`select pg_backend_pid() as pid`;

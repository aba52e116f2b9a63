import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { afterAll, beforeAll, describe } from 'vitest';
import { migrateDatabase } from '../support/databases.ts';
import { type PostgresServer, startPostgres } from '../support/embedded-postgres.ts';
import { hasPostgres } from '../support/postgres-binaries.ts';
import { behaviours } from './behaviours.ts';

// npm has no PostgreSQL 14 for the other platforms.
describe.skipIf(!hasPostgres('14'))('PostgreSQL 14, the oldest that is supported', () => {
  let server: PostgresServer;
  let client: postgres.Sql;
  beforeAll(async () => {
    server = await startPostgres({ version: '14' });
    await migrateDatabase(server.url);
    client = postgres(server.url, { max: 5, onnotice: () => {} });
  });
  afterAll(async () => {
    // Without a limit it may wait for ever, for connections that were terminated under it.
    await client.end({ timeout: 5 });
    await server.stop();
  });
  behaviours(() => drizzle({ client }), { url: () => server.url });
});

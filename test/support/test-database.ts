import { randomBytes } from 'node:crypto';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { afterAll, beforeAll, inject } from 'vitest';
import { type CitusCluster, citusCluster, distributeDatabase, dropOnNodes } from './citus.ts';
import { createDatabase, type Database, migrateDatabase } from './databases.ts';
// For the type of what `inject` returns.
import type {} from './global-setup.ts';

/** What a test's database contains. */
export interface TestDatabaseOptions {
  /** Whether it has the library's tables (as `drizzle/` creates them); true unless given. */
  readonly template?: boolean;
}

/** What `useTestDatabase` prepares. */
export interface UseTestDatabaseOptions extends TestDatabaseOptions {
  /** How many connections `db` and `client` may use; 5 unless given. */
  readonly max?: number;
}

/** A connection (or pool of them) and drizzle on top of it. */
export interface Connection {
  readonly client: postgres.Sql;
  readonly db: ReturnType<typeof openDrizzle>;
}

/** A test file's database; before its tests run, all but `connect` throws. */
export interface UsedTestDatabase extends Connection, Omit<Database, 'drop'> {
  /** Opens `count` further connections (1 unless given), each independent of the others. They are closed for you. */
  connect(count?: number): Promise<Connection[]>;
}

/** Creates a database that nothing else uses. */
export async function createTestDatabase({ template = true }: TestDatabaseOptions = {}): Promise<Database> {
  const server = inject('testServer');
  const cluster = citusCluster();
  if (cluster !== undefined && template) return await createDistributedDatabase(cluster, server.prefix);
  return createDatabase(server.url, {
    name: `${server.prefix}_${randomBytes(4).toString('hex')}`,
    ...(template && { template: server.template }),
  });
}

/** One with the library's tables on Citus, where a database cannot be copied. */
async function createDistributedDatabase(cluster: CitusCluster, prefix: string): Promise<Database> {
  const name = `${prefix}_${randomBytes(4).toString('hex')}`;
  const database = await createDatabase(cluster.url, { name });
  const drop = async (): Promise<void> => {
    await database.drop();
    await dropOnNodes(cluster, name);
  };
  try {
    await distributeDatabase(cluster, name, migrateDatabase);
  } catch (error) {
    await drop();
    throw error;
  }
  return { ...database, drop };
}

/** Gives the tests of a file (or of a `describe`) one database, created before the first and dropped after the last. */
export function useTestDatabase({ max = 5, template = true }: UseTestDatabaseOptions = {}): UsedTestDatabase {
  let database: Database | undefined;
  let main: Connection | undefined;
  const connections: Connection[] = [];

  const connectTo = (url: string, max: number): Connection => {
    const connection = openConnection(url, max);
    connections.push(connection);
    return connection;
  };

  beforeAll(async () => {
    database = await createTestDatabase({ template });
    main = connectTo(database.url, max);
  });

  afterAll(async () => {
    // The timeout is for connections in a transaction which a failed test has left open.
    await Promise.all(connections.map(({ client }) => client.end({ timeout: 1 })));
    await database?.drop();
  });

  return {
    get name() {
      return required(database).name;
    },
    get url() {
      return required(database).url;
    },
    get client() {
      return required(main).client;
    },
    get db() {
      return required(main).db;
    },
    async connect(count = 1) {
      const { url } = required(database);
      const opened = Array.from({ length: count }, () => connectTo(url, 1));
      // postgres.js connects with the first query, which would otherwise be part of what a test measures.
      await Promise.all(opened.map(({ client }) => client`SELECT 1`));
      return opened;
    },
  };
}

function openConnection(url: string, max: number): Connection {
  const client = postgres(url, { max, onnotice: () => {} });
  return { client, db: openDrizzle(client) };
}

function openDrizzle(client: postgres.Sql) {
  return drizzle({ client });
}

function required<T>(value: T | undefined): T {
  if (value === undefined)
    throw new Error('the test database exists only while the tests run, not while they are collected');
  return value;
}

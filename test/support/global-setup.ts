import { rm } from 'node:fs/promises';
import type { TestProject } from 'vitest/node';
import { databaseServer } from './database-server.ts';
import {
  closeDatabase,
  createDatabase,
  dropDatabases,
  migrateDatabase,
  uniqueDatabaseName,
} from './databases.ts';
import { partitioningOf, partitionTables } from './partitions.ts';
import { pgliteCopy } from './pglite-copy.ts';

/** Where test files find their databases. */
export interface TestServer {
  /** The URL of a database that may be used to create others. */
  readonly url: string;
  /** The name of a database with the library's tables, to be copied. */
  readonly template: string;
  /** What the names of all databases start with that are to be removed at the end of the run. */
  readonly prefix: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    testServer: TestServer;
  }
}

/** Before all tests: gets a server and prepares the template. Returns what is to be done after all tests. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await databaseServer();
  const prefix = uniqueDatabaseName();
  const teardown = async (): Promise<void> => {
    // Also those of test files which have not come to an end.
    await dropDatabases(server.url, prefix);
    await server.stop();
    await rm(pgliteCopy(prefix), { force: true });
  };
  try {
    const template = await createDatabase(server.url, { name: `${prefix}_template` });
    await migrateDatabase(template.url);
    const partitioning = partitioningOf(process.env.PARTITIONS);
    if (partitioning !== undefined) await partitionTables(template.url, partitioning);
    await closeDatabase(server.url, template.name);
    project.provide('testServer', { url: server.url, template: template.name, prefix });
    return teardown;
  } catch (error) {
    await teardown();
    throw error;
  }
}

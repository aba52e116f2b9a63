import { DrizzleQueryError } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { withServerFacts } from '../../src/core/sql/server-facts.ts';
import { tables } from '../queries/support/jobs.ts';
import { PLAIN_ONLY } from '../queries/support/plain-only.ts';
import { allStatements } from '../queries/support/statements.ts';
import { type CitusCluster, citusMigration, distributeDatabase, dropOnNodes } from '../support/citus.ts';
import { controlStatements, metricsStatements } from '../support/control-tables.ts';
import { createDatabase, migrateDatabase } from '../support/databases.ts';
import { until } from '../support/until.ts';

/** What a cluster says to a statement. */
export interface Tried {
  readonly name: string;
  /** `undefined`: it takes it. */
  readonly refusal: string | undefined;
}

/**
 * Sends each statement that a cluster may be sent once, in a transaction that is rolled back, to a database of its
 * own whose tables lie as docs/scaling.md puts them.
 */
export async function tryStatements(cluster: CitusCluster): Promise<readonly Tried[]> {
  const database = await createDatabase(cluster.url);
  try {
    await distributeDatabase(cluster, database.name, migrateDatabase);
    const client = postgres(database.url, { max: 1, onnotice: () => {} });
    try {
      const further = [
        ...(await controlStatements()),
        citusMigration('of control tables on Citus'),
        ...(await metricsStatements()),
        citusMigration('of the table of metrics on Citus'),
      ];
      for (const statement of further) await client.unsafe(statement);
      return await tryEach(client);
    } finally {
      await client.end({ timeout: 1 });
    }
  } finally {
    await database.drop();
    await dropOnNodes(cluster, database.name);
  }
}

async function tryEach(client: postgres.Sql): Promise<Tried[]> {
  const db = drizzle({ client });
  const known = withServerFacts(tables, { distributed: true, identified: true });
  const tried: Tried[] = [];
  for (const [name, query] of Object.entries(allStatements(known))) {
    if (name in PLAIN_ONLY) continue;
    const rolledBack = new Error('rolled back');
    const refusal = await db
      .transaction(async (tx) => {
        await tx.execute(query);
        throw rolledBack;
      })
      .catch((error: unknown) => (error === rolledBack ? undefined : messageOf(error)));
    tried.push({ name, refusal });
    // A statement that crashes the server ends all connections until it is back.
    if (refusal !== undefined) await until(() => client`select`.then(() => true).catch(() => false));
  }
  return tried;
}

function messageOf(error: unknown): string {
  const cause = error instanceof DrizzleQueryError ? error.cause : error;
  return cause instanceof Error ? cause.message : String(cause);
}

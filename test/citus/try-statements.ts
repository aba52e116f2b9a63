import { DrizzleQueryError } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { inContext } from '../../src/core/sql/statement-context.ts';
import { tables } from '../queries/support/jobs.ts';
import { factsOf } from '../queries/support/statement-facts.ts';
import { allStatements } from '../queries/support/statements.ts';
import { type CitusCluster, citusMigration, distributeDatabase, dropOnNodes } from '../support/citus.ts';
import { controlStatements, metricsStatements, workflowsStatements } from '../support/control-tables.ts';
import { createDatabase, migrateDatabase } from '../support/databases.ts';
import { until } from '../support/until.ts';

/** What a cluster says to a statement. */
export interface Tried {
  readonly name: string;
  /** What the library does there instead; `undefined`: it sends the statement. */
  readonly instead: string | undefined;
  /** `undefined`: it takes it. */
  readonly refusal: string | undefined;
}

/** Where the tables of workflows might lie. No guide says so, since no worker of such a queue starts on Citus. */
const WORKFLOWS = ['queue_steps', 'queue_mailboxes', 'queue_waits']
  .map((table) => `select create_distributed_table('${table}', 'queue', colocate_with => 'queue_jobs')`)
  .concat(['queue_batches', 'queue_tallies'].map((table) => `select create_reference_table('${table}')`));

/** The library itself keeps jobs of groups and batches out; here, Citus is asked. */
const TAKING_ALL = 'alter table queue_jobs drop constraint no_groups_or_batches_on_citus';

/**
 * Rows that the statements find, by the queue, kind, name and id that they ask for: Citus refuses some only once
 * one step of a statement hands a row to the next.
 */
const ROWS = [
  `insert into queue_workers (id, name, queues, kinds, seen_at) overriding system value
    values (42, 'mail', '["mail"]', '["mail"]', now() - interval '1 day')`,
  `insert into queue_jobs (id, queue, kind, payload, max_attempts, worker_id, fence, attempt, claimed_at)
    overriding system value values (42, 'mail', 'mail', 'null', 5, 42, 1, 1, now()),
      (43, 'mail', 'mail', 'null', 5, null, 0, 0, null)`,
  `insert into queue_results (job_id, queue, kind, payload, state, attempt, max_attempts, priority, fence, errors,
      metadata, created_at, run_at, finished_at)
    select n, 'mail', 'mail', 'null', (array['completed', 'discarded', 'cancelled'])[n - 49], 1, 5, 5, 1, '[]', '{}',
      now(), now(), now() - interval '1 year' from generate_series(50, 52) as n`,
  `insert into queue_pauses (queue, paused_at) values ('mail', now())`,
  `insert into queue_schedules (name, queue, kind, payload, settings, every_ms, revision, time_zone, catch_up, overlap,
      next_at, passed_at, seen_at, created_at, declared_by)
    select name, 'mail', 'mail', 'null', '{"priority": 5, "maxAttempts": 5, "own": {}, "metadata": {}}', 1000, 1, 'UTC',
      'latest', true, now(), now(), now() - interval '1 year', now(), 42 from unnest(array['mail', 'old']) as name`,
  `insert into queue_limits (queue, concurrency) values ('mail', 5)`,
  `insert into queue_usage (queue, kind, leases) values ('mail', 'mail', '{"42": [1, 2, 0], "43": [1, 1, 0]}')`,
  `insert into queue_keys (queue, kind, key, until) values ('mail', 'mail', 'mail', now() - interval '1 day')`,
  `insert into queue_metrics (at, worker_id, report, queue, kind, minutes)
    values (now() - interval '1 year', 42, 1, 'mail', 'mail', 60), (now() - interval '3 hours', 42, 2, 'mail', 'mail', 1)`,
];

/**
 * Sends each statement once, also those that the library never sends to a cluster, in a transaction that is rolled
 * back, to a database of its own whose tables lie as docs/scaling.md puts them.
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
        ...(await workflowsStatements()),
        ...WORKFLOWS,
      ];
      for (const statement of [TAKING_ALL, ...further, ...ROWS]) await client.unsafe(statement);
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
  const known = inContext(tables, { server: { distributed: true, identified: true } });
  const statements = Object.entries(allStatements(known));
  const { about } = factsOf(statements.map(([name]) => name));
  const tried: Tried[] = [];
  for (const [name, query] of statements) {
    const rolledBack = new Error('rolled back');
    const refusal = await db
      .transaction(async (tx) => {
        await tx.execute(query);
        throw rolledBack;
      })
      .catch((error: unknown) => (error === rolledBack ? undefined : messageOf(error)));
    tried.push({ name, instead: about(name).insteadOnCitus?.instead, refusal });
    // A statement that crashes the server ends all connections until it is back.
    if (refusal !== undefined) await until(() => client`select`.then(() => true).catch(() => false));
  }
  return tried;
}

function messageOf(error: unknown): string {
  const cause = error instanceof DrizzleQueryError ? error.cause : error;
  return cause instanceof Error ? cause.message : String(cause);
}

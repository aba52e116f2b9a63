import type { QueueLimits } from 'drizzle-queue';
import postgres from 'postgres';
import { controlStatements } from '../../../test/support/control-tables.ts';
import { migrateDatabase } from '../../../test/support/databases.ts';
import { padBytes, type System } from '../../harness/system.ts';
import type { DrizzleQueueOptions } from './work.ts';

/** The library's tables with what docs/schema.md recommends for many jobs per second. */
export async function createTables(url: string): Promise<void> {
  await migrateDatabase(url);
  const sql = postgres(url, { max: 1 });
  await sql`alter table queue_jobs set (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.05)`;
  await sql`alter table queue_results set (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05)`;
  await sql.end();
}

/** This library with default options but those that are given. */
export function drizzleQueue(name: string, options: Partial<DrizzleQueueOptions> = {}): System {
  const complete: DrizzleQueueOptions = { driver: 'postgres.js', keepResult: true, ...options };
  return {
    name: `drizzle-queue${name === '' ? '' : `, ${name}`}`,
    setup: 'createWorker with its default options, and the storage parameters of docs/schema.md',
    program: 'drizzle-queue',
    options: complete,
    table: 'queue_jobs',
    create: createTables,
    async fill({ sql }, { from, count, payloadBytes }) {
      await sql`
        insert into queue_jobs (queue, kind, payload, max_attempts)
        select 'bench', 'bench', jsonb_build_object('n', i, 'pad', repeat('x', ${padBytes(payloadBytes)}::int4)), 20
        from generate_series(${from}::int4, ${from + count - 1}::int4) as i`;
    },
    async anyLeft(sql) {
      const [row] = await sql<{ left: boolean }[]>`select exists (select from queue_jobs) as left`;
      return row?.left ?? false;
    },
  };
}

export const withoutResults = drizzleQueue('no results', { keepResult: false });
export const withResults = drizzleQueue('results kept');
export const withOutcomes = drizzleQueue('results kept as outcomes', { keepResult: 'outcome' });
export const onNodePostgres = drizzleQueue('no results, node-postgres', {
  keepResult: false,
  driver: 'node-postgres',
});

async function createGroupedTables(url: string): Promise<void> {
  await createTables(url);
  const sql = postgres(url, { max: 1 });
  for (const statement of await controlStatements()) await sql.unsafe(statement);
  await sql.end();
}

/** No results, and a limit of the queue. */
export function limitedQueue(
  name: string,
  limits: QueueLimits,
  options: Partial<DrizzleQueueOptions> = {},
): System {
  return { ...drizzleQueue(name, { keepResult: false, limits, ...options }), create: createGroupedTables };
}

/**
 * No results, and jobs in groups.
 *
 * @param group the name of a job's group, as SQL over its number `i`
 */
export function groupedQueue(
  name: string,
  limits: QueueLimits,
  group: string,
  options: Partial<DrizzleQueueOptions> = {},
): System {
  return {
    ...limitedQueue(name, limits, options),
    async fill({ sql }, { from, count, payloadBytes }) {
      // With what an enqueue notes: of each group once.
      await sql`
        with inserted as (
          insert into queue_jobs (queue, kind, payload, max_attempts, group_key)
          select 'bench', 'bench',
            jsonb_build_object('n', i, 'pad', repeat('x', ${padBytes(payloadBytes)}::int4)), 20, ${sql.unsafe(group)}
          from generate_series(${from}::int4, ${from + count - 1}::int4) as i
          returning group_key, run_at
        )
        insert into queue_notes (queue, due_at, group_keys)
        select 'bench', n.due_at, array_agg(n.group_key) from (
          select g.*, (row_number() over () - 1) / 20 as part
          from (select min(run_at) as due_at, group_key from inserted group by group_key) as g
        ) as n
        group by n.due_at, n.part`;
    },
  };
}

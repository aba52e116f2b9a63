import type { Sql } from 'postgres';
import { countStatements } from './backends.ts';

/** What work has cost the server. */
export interface Footprint {
  readonly walBytes: number;
  /** The share of updates that touched no index; NaN without updates. */
  readonly hotShare: number;
  readonly deadlocks: number;
  readonly commits: number;
  /** NaN on a server that does not count them. */
  readonly statements: number;
}

/** Begins to count; what it answers ends that. To be called when the worker has disconnected: until then it keeps figures to itself. */
export async function countFootprint(sql: Sql, table: string): Promise<() => Promise<Footprint>> {
  const before = await read(sql, table);
  return async () => {
    const after = await read(sql, table);
    return {
      walBytes: after.wal - before.wal,
      hotShare: (after.hot - before.hot) / (after.updates - before.updates),
      deadlocks: after.deadlocks - before.deadlocks,
      commits: after.commits - before.commits,
      statements: after.statements - before.statements,
    };
  };
}

async function read(sql: Sql, table: string) {
  const [row] = await sql<
    { wal: number; updates: number; hot: number; deadlocks: number; commits: number; counts: boolean }[]
  >`
    select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as wal,
      coalesce(pg_stat_get_tuples_updated(t.oid), 0)::float8 as updates,
      coalesce(pg_stat_get_tuples_hot_updated(t.oid), 0)::float8 as hot,
      d.deadlocks::float8 as deadlocks, d.xact_commit::float8 as commits,
      current_setting('shared_preload_libraries') ~ 'pg_stat_statements' as counts
    from (select to_regclass(${table})::oid as oid) as t, pg_stat_database as d
    where d.datname = current_database()`;
  if (row === undefined) throw new TypeError('One row was selected');
  return { ...row, statements: row.counts ? await countStatements(sql) : Number.NaN };
}

import type { SQL } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type { Connection } from '../../support/test-database.ts';

/** One node of what `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)` answers; each has many more fields. */
export interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Subplan Name'?: string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  readonly 'Plan Rows': number;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Shared Hit Blocks': number;
  readonly 'Shared Read Blocks': number;
  readonly Plans?: readonly PlanNode[];
}

/** Planned for these very values, or once for any values, as a driver's prepared statement is after a few runs. */
export type PlanMode = 'force_custom_plan' | 'force_generic_plan';

const dialect = new PgDialect();

/** How Postgres carries the statement out; what it changes is rolled back. On a single connection. */
export async function explain({ client }: Connection, query: SQL, mode: PlanMode): Promise<PlanNode> {
  const { sql, params } = dialect.sqlToQuery(query);
  await client.unsafe(`begin; set local plan_cache_mode = ${mode}; prepare explained as ${sql}`);
  try {
    const values = params.length === 0 ? '' : `(${params.map(literal).join(', ')})`;
    const [row] = await client.unsafe<{ 'QUERY PLAN': [{ Plan: PlanNode }] }[]>(
      `explain (analyze, buffers, timing off, format json) execute explained${values}`,
    );
    if (row === undefined) throw new Error('EXPLAIN answered nothing');
    return row['QUERY PLAN'][0].Plan;
  } finally {
    await client.unsafe('rollback; deallocate explained');
  }
}

function literal(value: unknown): string {
  if (value === null || typeof value === 'number') return String(value);
  return `'${String(value).replaceAll("'", "''")}'`;
}

/** The node and all below it. */
export function nodesOf(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

/** The part of a plan that computes a CTE. */
export function cteOf(plan: PlanNode, name: string): PlanNode {
  const cte = nodesOf(plan).find((node) => node['Subplan Name'] === `CTE ${name}`);
  if (cte === undefined) throw new Error(`no CTE ${name}`);
  return cte;
}

/** How many pages a node and all below it looked at. */
export function buffersOf(node: PlanNode): number {
  return node['Shared Hit Blocks'] + node['Shared Read Blocks'];
}

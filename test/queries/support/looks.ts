import type { SQL } from 'drizzle-orm';
import { PgDialect } from 'drizzle-orm/pg-core';
import type { Connection } from '../../support/test-database.ts';
import { buffersOf, explain, nodesOf, type PlanMode, type PlanNode } from './explain.ts';

/** What a node has looked at in vain, once for each of its loops. */
interface Looks extends PlanNode {
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly 'CTE Name'?: string;
}

export interface MostLooks {
  /** The node that has looked at most rows: those that it has passed on, and those in vain. */
  readonly node: string;
  readonly rows: number;
  /** How many pages the whole statement looked at. */
  readonly pages: number;
  /** The tables that it has written. */
  readonly written: readonly string[];
}

/** Carries a statement out, rolls it back, and answers how much it has looked at. */
export async function looksOf(connection: Connection, query: SQL, mode: PlanMode): Promise<MostLooks> {
  const plan = await explain(connection, query, mode);
  const nodes = nodesOf(plan) as readonly Looks[];
  const looks = nodes.map((node) => {
    const inVain = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0);
    const name = node['Relation Name'] ?? node['CTE Name'] ?? '';
    return {
      node: `${node['Node Type']} ${name}`.trim(),
      rows: (node['Actual Rows'] + inVain) * node['Actual Loops'],
    };
  });
  const most = looks.reduce((a, b) => (b.rows > a.rows ? b : a));
  const writes = nodes.filter((node) => node['Node Type'] === 'ModifyTable');
  const written = [...new Set(writes.flatMap((node) => node['Relation Name'] ?? []))];
  return { ...most, pages: buffersOf(plan), written };
}

/** Whether `planAnew` is in a statement: then Postgres never takes its generic plan. */
export function isPlannedAnew(query: SQL): boolean {
  return /generate_series\(1, \$\d+::int4\) as a cross join/.test(new PgDialect().sqlToQuery(query).sql);
}

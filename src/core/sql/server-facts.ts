import { keepGrouping } from '../../features/limits/sql/grouping.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';

/** What a worker has found out about its database, for its statements. */
export interface ServerFacts {
  /** The tables are on Citus: each queue gets a statement of its own, without what Citus refuses. */
  readonly distributed: boolean;
  /** The role may read which server this is, `pg_control_system()`, as every role may by default. */
  readonly identified: boolean;
}

const facts = new WeakMap<QueueTables, ServerFacts>();

/** The same tables, with the facts for functions that take tables. */
export function withServerFacts(tables: QueueTables, known: ServerFacts): QueueTables {
  const same = { ...tables };
  facts.set(same, known);
  keepGrouping(tables, same);
  return same;
}

/** More tables of the same database, with the facts that are known of some. */
export function withFactsOf<TTables extends QueueTables>(known: QueueTables, tables: TTables): TTables {
  const same = { ...tables };
  const found = facts.get(known);
  if (found !== undefined) facts.set(same, found);
  keepGrouping(known, same);
  keepGrouping(tables, same);
  return same;
}

/** `false` for tables without facts. */
export function isDistributed(tables: QueueTables): boolean {
  return facts.get(tables)?.distributed ?? false;
}

/** `true` for tables without facts. */
export function isIdentified(tables: QueueTables): boolean {
  return facts.get(tables)?.identified ?? true;
}

import type { QueueTables } from '../schema/create-queue-tables.ts';

/** What a worker has found out about its database, and its statements depend on. */
export interface ServerFacts {
  /**
   * The tables lie on Citus: what is about many queues goes out as one statement per queue, and what Citus
   * refuses is left out.
   */
  readonly distributed: boolean;
  /** The role may read which server this is, `pg_control_system()`, as every role may by default. */
  readonly identified: boolean;
}

const facts = new WeakMap<QueueTables, ServerFacts>();

/** The same tables, for functions that take tables and heed the facts. */
export function withServerFacts(tables: QueueTables, known: ServerFacts): QueueTables {
  const same = { ...tables };
  facts.set(same, known);
  return same;
}

/** More tables of the same database, with the facts that are known of some. */
export function withFactsOf<TTables extends QueueTables>(known: QueueTables, tables: TTables): TTables {
  const same = { ...tables };
  const found = facts.get(known);
  if (found !== undefined) facts.set(same, found);
  return same;
}

/** Of tables without facts `false`. */
export function isDistributed(tables: QueueTables): boolean {
  return facts.get(tables)?.distributed ?? false;
}

/** Of tables without facts `true`. */
export function isIdentified(tables: QueueTables): boolean {
  return facts.get(tables)?.identified ?? true;
}

import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { MemberExtension } from './member-extension.ts';
import type { StatementExtension } from './statement-extension.ts';

/** What a worker has found out about its database, for its statements. */
export interface ServerFacts {
  /** The tables are on Citus: each queue gets a statement of its own, without what Citus refuses. */
  readonly distributed: boolean;
  /** The role may read which server this is, `pg_control_system()`, as every role may by default. */
  readonly identified: boolean;
}

/** What statements about some tables are built with, beside the tables. */
export interface StatementContext {
  readonly server?: ServerFacts;
  readonly extension?: StatementExtension;
  readonly members?: MemberExtension;
}

const CONTEXT = Symbol('drizzle-queue.context');

/**
 * The same tables, with more context. The context is a property of the object, so `{ ...tables }` has it,
 * too. Its key is a symbol, so code that iterates over the tables by name does not see it.
 */
export function inContext<TTables extends QueueTables>(tables: TTables, context: StatementContext): TTables {
  return { ...tables, [CONTEXT]: { ...contextOf(tables), ...context } };
}

/** What is known of some tables: nothing, if they were given no context. */
export function contextOf(tables: QueueTables & { readonly [CONTEXT]?: StatementContext }): StatementContext {
  return tables[CONTEXT] ?? {};
}

/** Whether the server is Citus; `false` while nothing is known of it. */
export function isDistributed(tables: QueueTables): boolean {
  return contextOf(tables).server?.distributed ?? false;
}

/** Whether the role may read which server this is; `true` while nothing is known of it. */
export function isIdentified(tables: QueueTables): boolean {
  return contextOf(tables).server?.identified ?? true;
}

/** What is added to the statements of a queue whose jobs may be in groups; `undefined` for another queue. */
export function groupsIn(tables: QueueTables, queue: string): StatementExtension | undefined {
  const { extension } = contextOf(tables);
  return extension?.groupedQueues?.has(queue) === false ? undefined : extension;
}

/**
 * What the text of a statement about a queue depends on: its name if its jobs may be in groups, otherwise
 * nothing. So a kept text serves all queues without groups: their names may be without end.
 */
export function nameInText(tables: QueueTables, queue: string): string {
  return groupsIn(tables, queue) === undefined ? '' : queue;
}

export function declaresGroups(tables: QueueTables, queue: string): boolean {
  return contextOf(tables).extension?.groupedQueues?.has(queue) === true;
}

/** As {@link groupsIn}, for a statement about any queue: `undefined` where no jobs can be in groups. */
export function groupsInAny(tables: QueueTables): StatementExtension | undefined {
  const { extension } = contextOf(tables);
  return extension?.groupedQueues?.size === 0 ? undefined : extension;
}

/** What is added where jobs may be members of batches; `undefined` where none can be. */
export function membersIn(tables: QueueTables): MemberExtension | undefined {
  return contextOf(tables).members;
}

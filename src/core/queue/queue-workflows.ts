import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { OwnColumns } from '../schema/own-columns.ts';
import type { EnqueueSettings } from './enqueue/enqueue-around.ts';

export interface QueueOfWorkflows {
  readonly tables: QueueTables;
  /** Where workers listen; `undefined` to send no notifications. */
  readonly channel: string | undefined;
  /** What its enqueues share; asked for once the queue is made. */
  settings(): EnqueueSettings;
}

export interface QueueWorkflows {
  /** The queue's tables, with what workflows add to statements about them. */
  readonly statementTables: QueueTables;
}

export type MakeQueueWorkflows<TWorkflows extends QueueWorkflows = QueueWorkflows> = (
  queue: QueueOfWorkflows,
) => TWorkflows;

/** The workflows of a queue with own columns: `made`, computed from the type of those. */
export interface WorkflowsByOwn {
  readonly own: OwnColumns;
  readonly made: unknown;
}

/** What workflows are for a queue with the own columns `TOwn`. */
export type WorkflowsWith<TWorkflows, TOwn extends OwnColumns> = TWorkflows extends {
  readonly byOwn: infer TByOwn extends WorkflowsByOwn;
}
  ? (TByOwn & { readonly own: TOwn })['made']
  : TWorkflows;

/** What a feature adds to the contexts of handlers: `context`, computed from the type of `db`. */
export interface AddedTypes {
  readonly db: unknown;
  readonly context: unknown;
}

/** What the features of a queue add to the contexts of its handlers; `unknown` where they add nothing. */
export type AddedBy<TQueue, TDb> = TQueue extends {
  readonly workflows: { readonly added: infer TAdded extends AddedTypes };
}
  ? (TAdded & { readonly db: TDb })['context']
  : unknown;

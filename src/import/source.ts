import type { Executor } from '../sql/executor.ts';
import type { ReadJob } from './foreign-job.ts';
import type { BullmqLists } from './sources/bullmq-lists.ts';

/** Where a read went on to; a text that only its source understands. */
export type Cursor = string;

export interface ReadPage {
  /** The names to read. */
  readonly names: readonly string[];
  readonly after: Cursor | undefined;
  readonly limit: number;
  /** Whether to lock the jobs until the transaction ends, and pass over those that others have locked. */
  readonly lock: boolean;
}

export interface FoundPage {
  readonly jobs: readonly ReadJob[];
  /** Where the next one goes on; absent when this one is empty. */
  readonly last?: Cursor;
}

/** How many jobs there are with a name. */
export interface ForeignCount {
  readonly name: string;
  /** Those that {@link TableSource.read} would return. */
  readonly waiting: number;
  /** Those that a worker has. */
  readonly active: number;
}

/** A system that keeps its jobs in this database, so that a move is one transaction. */
export interface TableSource {
  readonly type: 'table';
  readonly title: string;
  count(db: Executor): Promise<readonly ForeignCount[]>;
  /** Those that wait, in an order in which `after` is where the page before ended. */
  read(db: Executor, page: ReadPage): Promise<FoundPage>;
  /** Takes away jobs that this transaction has locked; returns how many it took. */
  remove(db: Executor, jobs: readonly ReadJob[]): Promise<number>;
}

/** A system without a common transaction. */
export interface RedisSource {
  readonly type: 'redis';
  readonly title: string;
  open(): Promise<BullmqLists>;
}

/** Where jobs are imported from; made by {@link from}. */
export type ImportSource = TableSource | RedisSource;

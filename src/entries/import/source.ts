import type { Executor } from '../../index.ts';
import type { ReadJob } from './foreign-job.ts';
import type { BullmqLists } from './sources/bullmq-lists.ts';

/** Where a job stands in the order of its source; a text that only its source understands. */
export type Place = string;

export interface ListedPage {
  /** The names to list. */
  readonly names: readonly string[];
  readonly after: Place | undefined;
  readonly limit: number;
}

/** How many jobs there are with a name. */
export interface ForeignCount {
  readonly name: string;
  /** How many jobs {@link TableSource.list} would return. */
  readonly waiting: number;
  /** How many jobs workers have. */
  readonly active: number;
}

/** A system that keeps its jobs in this database, so that a move is one transaction. */
export interface TableSource {
  readonly type: 'table';
  readonly title: string;
  count(db: Executor): Promise<readonly ForeignCount[]>;
  /** Where those stand that wait, in their order. Locks nothing. */
  list(db: Executor, page: ListedPage): Promise<readonly Place[]>;
  /**
   * Of these, the jobs that still wait, in this order.
   *
   * @param lock whether to lock them until the transaction ends, and pass over those that others have locked
   */
  read(db: Executor, places: readonly Place[], lock: boolean): Promise<readonly ReadJob[]>;
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

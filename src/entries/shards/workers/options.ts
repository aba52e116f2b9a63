import type { OwnColumns } from '../../../core/schema/index.ts';
import type { Database, WorkerOptions } from '../../../index.ts';

/** What may differ from shard to shard. */
export type ShardSettings<TDb, TOwn extends OwnColumns = OwnColumns> = Omit<
  WorkerOptions<TDb, TOwn>,
  'queue' | 'handlers' | 'jobs'
>;

/** The options of {@link createWorkers}: those of `createWorker` but the queue, which each shard has. */
export interface WorkersOptions<
  TName extends string,
  TDb extends Database,
  TOwn extends OwnColumns = OwnColumns,
  THandled extends string = string,
  TKind extends string = string,
> extends Omit<WorkerOptions<TDb, TOwn, THandled, TKind>, 'queue' | 'name' | 'log'> {
  /**
   * What the worker of each shard is named after in its `queue_workers`: `name/shard`. Names differ, because
   * metrics tell workers apart by them.
   * @default 'host:pid', so that a worker is 'host:pid/shard'
   */
  name?: string | undefined;
  /**
   * `false` for silence. Loggers are given by {@link each}, since ids of jobs say nothing without the shard.
   * @default one line each on stderr, with the name of the shard: its worker's start, each discarded job and
   * why, handlers that a stop waits for, and errors of the worker if nothing listens to them
   */
  log?: false | undefined;
  /**
   * Returns the settings of one shard, which replace those beside it. Called once for each shard, by
   * {@link createWorkers}: `(shard) => ({ log: logger.child({ shard }) })`.
   * @default all shards have the same settings
   */
  each?: ((shard: TName) => ShardSettings<TDb, TOwn>) | undefined;
}

import type { WorkerEvents } from '../../../index.ts';

/** What a listener of {@link Workers} is told: what a worker tells of the event, and the shard's name. */
export type ShardEvent<K extends keyof WorkerEvents, TName extends string = string> = Told<
  WorkerEvents[K]
> & {
  readonly shard: TName;
};

type Told<TArgs extends readonly unknown[]> = TArgs extends readonly [infer TTold] ? TTold : unknown;

/** Several databases with the same jobs: the choice of one by a key, and one process that works on all. */
export type { Shard } from './shard.ts';
export { type ShardKey, shardOf } from './shard-of.ts';
export { createWorkers } from './workers/create-workers.ts';
export type { ShardSettings, WorkersOptions } from './workers/options.ts';
export type { ShardEvent } from './workers/shard-event.ts';
export type { Workers } from './workers/workers.ts';
export type { WorkersHealth } from './workers/workers-health.ts';

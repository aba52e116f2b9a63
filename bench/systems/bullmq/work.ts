import { createPostgresBackend, Worker } from 'bullmq';
import type { Program } from '../../child/programs.ts';

export interface BullmqOptions {
  /** Where the Redis server is; on Postgres without one. */
  readonly redisUrl?: string;
  readonly concurrency: number;
  /** At most so many starts in `duration` milliseconds. @default no limit */
  readonly limiter?: { readonly max: number; readonly duration: number };
  /** How many queues, each with a worker of its own. The jobs are in the first. */
  readonly queues?: number;
}

/** BullMQ with one processor per job. */
export const work: Program = async ({ url, onJob }, options) => {
  const { redisUrl, concurrency, limiter, queues = 1 } = options as BullmqOptions;
  const settings = { concurrency, ...(limiter && { limiter }) };
  const workers = Array.from({ length: queues }, (_, index) => {
    const name = index === 0 ? 'bench' : `bench-${index}`;
    const process = async ({ data }: { data: { n: number } }) => onJob(data.n);
    const worker =
      redisUrl === undefined
        ? new Worker(name, process, { connection: url, ...settings }, createPostgresBackend)
        : new Worker(name, process, { connection: { url: redisUrl }, ...settings });
    worker.on('error', (error) => console.error('BullMQ:', error));
    return worker;
  });
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  return async () => {
    await Promise.all(workers.map((worker) => worker.close()));
  };
};

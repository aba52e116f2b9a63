import { createPostgresBackend, Worker } from 'bullmq';
import { type Handling, openHandler } from '../../child/handling.ts';
import type { Program } from '../../child/programs.ts';

export interface BullmqOptions {
  /** Where the Redis server is; on Postgres without one. */
  readonly redisUrl?: string;
  readonly concurrency: number;
  /** At most so many starts in `duration` milliseconds. @default no limit */
  readonly limiter?: { readonly max: number; readonly duration: number };
  /** How many queues, each with a worker of its own. The jobs are in the first. */
  readonly queues?: number;
  /** What the processors do. @default nothing */
  readonly handling?: Handling;
}

/** BullMQ with one processor per job. */
export const work: Program = async (stage, options) => {
  const { redisUrl, concurrency, limiter, queues = 1, handling } = options as BullmqOptions;
  const handler = await openHandler(stage, handling);
  const settings = { concurrency, ...(limiter && { limiter }) };
  const workers = Array.from({ length: queues }, (_, index) => {
    const name = index === 0 ? 'bench' : `bench-${index}`;
    const process = async ({ data }: { data: { n: number } }) => handler.handle(data.n);
    const worker =
      redisUrl === undefined
        ? new Worker(name, process, { connection: stage.url, ...settings }, createPostgresBackend)
        : new Worker(name, process, { connection: { url: redisUrl }, ...settings });
    worker.on('error', (error) => console.error('BullMQ:', error));
    return worker;
  });
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  return async () => {
    await Promise.all(workers.map((worker) => worker.close()));
    await handler.close();
  };
};

import { createPostgresBackend, type FlowJob, FlowProducer, Worker } from 'bullmq';
import type { OpenFan } from '../../child/fan.ts';

export interface BullmqFanOptions {
  /** Where the Redis server is; on Postgres without one. */
  readonly redisUrl?: string;
  readonly concurrency: number;
}

const CHUNK = 500;

/** Flows: `FlowProducer.add` of one parent, `addBulk` of many. */
export const openFan: OpenFan = async ({ url, options }, onParent) => {
  const { redisUrl, concurrency } = options as BullmqFanOptions;
  const work = (name: string, process: () => Promise<void>) =>
    redisUrl === undefined
      ? new Worker(name, process, { connection: url, concurrency }, createPostgresBackend)
      : new Worker(name, process, { connection: { url: redisUrl }, concurrency });
  const workers = [work('child', async () => undefined), work('parent', async () => onParent())];
  for (const worker of workers) worker.on('error', (error) => console.error('BullMQ:', error));
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  const flows =
    redisUrl === undefined
      ? new FlowProducer({ connection: url }, createPostgresBackend)
      : new FlowProducer({ connection: { url: redisUrl } });
  return {
    async put(parents, children) {
      const flowOf = (): FlowJob => ({
        name: 'parent',
        queueName: 'parent',
        children: Array.from({ length: children }, () => ({ name: 'child', queueName: 'child' })),
      });
      if (parents === 1) {
        await flows.add(flowOf());
        return;
      }
      for (let from = 0; from < parents; from += CHUNK) {
        await flows.addBulk(Array.from({ length: Math.min(CHUNK, parents - from) }, flowOf));
      }
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.close()));
      await flows.close();
    },
  };
};

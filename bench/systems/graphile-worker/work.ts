import { Logger, run } from 'graphile-worker';
import type { Program } from '../../child/programs.ts';

export interface GraphileWorkerOptions {
  readonly concurrency: number;
  /** With the settings that its page on performance recommends. */
  readonly batches: boolean;
  /** @default its own */
  readonly pollInterval?: number;
  /** How many tasks it knows; it has no queues of which one could serve some. The jobs are of the first. */
  readonly queues?: number;
  /** Know another task than that of the jobs: listen, with nothing to do. */
  readonly servesOther?: boolean;
}

/** graphile-worker with one task executor per job. */
export const work: Program = async ({ url, onJob }, options) => {
  const {
    concurrency,
    batches,
    pollInterval,
    queues = 1,
    servesOther = false,
  } = options as GraphileWorkerOptions;
  const runner = await run({
    connectionString: url,
    noHandleSignals: true,
    logger: new Logger(() => () => undefined),
    taskList: Object.fromEntries(
      Array.from({ length: queues }, (_, index) => [
        index === 0 && !servesOther ? 'bench' : `bench-${index}`,
        async (payload: unknown) => onJob((payload as { n: number }).n),
      ]),
    ),
    preset: {
      worker: {
        concurrentJobs: concurrency,
        ...(pollInterval !== undefined && { pollInterval }),
        maxPoolSize: Math.max(10, concurrency + 2),
        ...(batches && { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }),
      },
    },
  });
  return () => runner.stop();
};

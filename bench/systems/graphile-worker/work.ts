import { Logger, run } from 'graphile-worker';
import type { Program } from '../../child/programs.ts';

export interface GraphileWorkerOptions {
  readonly concurrency: number;
  /** With the settings that its page on performance recommends. */
  readonly batches: boolean;
}

/** graphile-worker with one task executor per job. */
export const work: Program = async ({ url, onJob }, options) => {
  const { concurrency, batches } = options as GraphileWorkerOptions;
  const runner = await run({
    connectionString: url,
    noHandleSignals: true,
    logger: new Logger(() => () => undefined),
    taskList: {
      bench: async (payload) => onJob((payload as { n: number }).n),
    },
    preset: {
      worker: {
        concurrentJobs: concurrency,
        maxPoolSize: Math.max(10, concurrency + 2),
        ...(batches && { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }),
      },
    },
  });
  return () => runner.stop();
};

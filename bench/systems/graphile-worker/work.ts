import { Logger, run } from 'graphile-worker';
import { type Handling, openHandler } from '../../child/handling.ts';
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
  /** How many jobs it fetches at once, where it batches. @default 500 */
  readonly localQueueSize?: number;
  /** How many connections it has at most. @default two more than jobs at once, and at least 10 */
  readonly poolSize?: number;
  /** What the executors do. @default nothing */
  readonly handling?: Handling;
}

/** graphile-worker with one task executor per job. */
export const work: Program = async (stage, options) => {
  const {
    concurrency,
    batches,
    pollInterval,
    queues = 1,
    servesOther = false,
    localQueueSize = 500,
    poolSize = Math.max(10, concurrency + 2),
    handling,
  } = options as GraphileWorkerOptions;
  const handler = await openHandler(stage, handling);
  const runner = await run({
    connectionString: stage.url,
    noHandleSignals: true,
    logger: new Logger(() => () => undefined),
    taskList: Object.fromEntries(
      Array.from({ length: queues }, (_, index) => [
        index === 0 && !servesOther ? 'bench' : `bench-${index}`,
        async (payload: unknown) => handler.handle((payload as { n: number }).n),
      ]),
    ),
    preset: {
      worker: {
        concurrentJobs: concurrency,
        ...(pollInterval !== undefined && { pollInterval }),
        maxPoolSize: poolSize,
        ...(batches && {
          localQueue: { size: localQueueSize },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
        }),
      },
    },
  });
  return async () => {
    await runner.stop();
    await handler.close();
  };
};

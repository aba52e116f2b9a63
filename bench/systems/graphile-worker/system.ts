import { Logger, runMigrations } from 'graphile-worker';
import { padBytes, type System } from '../../harness/system.ts';
import type { GraphileWorkerOptions } from './work.ts';

const create = (url: string) =>
  runMigrations({ connectionString: url, logger: new Logger(() => () => undefined) });

/** @param queueName the named queue of a job, as SQL over its number `i` */
function graphileWorker(
  name: string,
  setup: string,
  options: GraphileWorkerOptions,
  queueName = 'null',
): System {
  return {
    name: `graphile-worker, ${name}`,
    setup,
    program: 'graphile-worker',
    options,
    table: 'graphile_worker._private_jobs',
    create,
    async fill({ sql }, { from, count, payloadBytes }) {
      await sql`
        select count(*) from graphile_worker.add_jobs(array(
          select row('bench', json_build_object('n', i, 'pad', repeat('x', ${padBytes(payloadBytes)}::int4)),
            ${sql.unsafe(queueName)}, null, null, null, null, null)::graphile_worker.job_spec
          from generate_series(${from}::int4, ${from + count - 1}::int4) as i))`;
    },
    async anyLeft(sql) {
      const [row] = await sql<{ left: boolean }[]>`
        select exists (select from graphile_worker._private_jobs) as left`;
      return row?.left ?? false;
    },
  };
}

/** As its page on performance recommends. */
export const graphileBest = graphileWorker(
  'best',
  'localQueue.size 500, completeJobBatchDelay 0, failJobBatchDelay 0, prepared statements, concurrency 24',
  { concurrency: 24, batches: true },
);

/** As its page on performance recommends, with a local queue that is large enough for so many jobs at once. */
export function graphileHandling(name: string, options: Omit<GraphileWorkerOptions, 'batches'>): System {
  const { concurrency, localQueueSize = 500, poolSize = 10 } = options;
  return graphileWorker(
    name,
    `localQueue.size ${localQueueSize}, completeJobBatchDelay 0, failJobBatchDelay 0, prepared statements, concurrency ${concurrency}, maxPoolSize ${poolSize}`,
    { ...options, localQueueSize, poolSize, batches: true },
  );
}

/** The jobs of a named queue run one after the other: without a local queue, which would wait for each. */
export function graphileQueues(name: string, queueName: string, concurrency: number): System {
  const setup = `concurrency ${concurrency}, named queues, no local queue, pollInterval 10`;
  return {
    ...graphileWorker(name, setup, { concurrency, batches: false, pollInterval: 10 }, queueName),
    share: 0.02,
  };
}

export const graphileDefaults: System = {
  ...graphileWorker('defaults', 'concurrency 24, everything else by default', {
    concurrency: 24,
    batches: false,
  }),
  share: 0.05,
};

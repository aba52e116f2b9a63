import { type Job, PgBoss, type WorkOptions } from 'pg-boss';
import { type Handling, openHandler } from '../../child/handling.ts';
import { newOrder } from '../../child/orders.ts';
import type { Program } from '../../child/programs.ts';

export interface PgBossOptions {
  readonly work: WorkOptions;
  /** Listen for new jobs. */
  readonly listen: boolean;
  /** Count the jobs that wait every second, for `burstWhenReadyExceeds`. @default every minute */
  readonly counts?: boolean;
  /** How many queues, each with workers of its own. The jobs are in the first. */
  readonly queues?: number;
  /** Serve another queue than the one that the jobs are in: listen, with nothing to do. */
  readonly servesOther?: boolean;
  /** What the handler does for each job of its batch, for all of them at once. @default nothing */
  readonly handling?: Handling;
  /** Insert an order for each job in the transaction that `transactional` hands over. @default false */
  readonly ordersInside?: boolean;
  /** How many connections it has at most. @default its own */
  readonly poolSize?: number;
}

/** Its transaction takes SQL. */
const INSERT_ORDER = 'insert into orders (item, quantity) values ($1, $2)';

/** pg-boss with one array handler, as it has them. */
export const work: Program = async (stage, options) => {
  const {
    work,
    listen,
    counts = false,
    queues = 1,
    servesOther = false,
    handling,
    ordersInside = false,
    poolSize,
  } = options as PgBossOptions;
  const { url, onJob } = stage;
  const handler = await openHandler(stage, handling);
  const boss = new PgBoss({
    connectionString: url,
    ...(poolSize !== undefined && { max: poolSize }),
    useListenNotify: listen,
    ...(counts && { superviseIntervalSeconds: 1, monitorIntervalSeconds: 1, queueCacheIntervalSeconds: 1 }),
  });
  boss.on('error', (error) => console.error('pg-boss:', error));
  await boss.start();
  for (let index = 0; index < queues; index++) {
    const name = index === 0 && !servesOther ? 'bench' : `bench-${index}`;
    if (name !== 'bench') await boss.createQueue(name, { notify: listen });
    if (ordersInside) {
      await boss.work(name, { ...work, transactional: true }, async (jobs: Job<{ n: number }>[], tx) => {
        for (const { data } of jobs) {
          await tx.executeSql(INSERT_ORDER, [newOrder.item, newOrder.quantity]);
          onJob(data.n);
        }
      });
    } else if (handling === undefined) {
      await boss.work<{ n: number }>(name, work, async (jobs) => {
        for (const { data } of jobs) onJob(data.n);
      });
    } else {
      await boss.work<{ n: number }>(name, work, async (jobs) => {
        await Promise.all(jobs.map(({ data }) => handler.handle(data.n)));
      });
    }
  }
  return async () => {
    await boss.stop({ graceful: true, close: true });
    await handler.close();
  };
};

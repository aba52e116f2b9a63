import { PgBoss, type WorkOptions } from 'pg-boss';
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
}

/** pg-boss with one array handler, as it has them. */
export const work: Program = async ({ url, onJob }, options) => {
  const { work, listen, counts = false, queues = 1, servesOther = false } = options as PgBossOptions;
  const boss = new PgBoss({
    connectionString: url,
    useListenNotify: listen,
    ...(counts && { superviseIntervalSeconds: 1, monitorIntervalSeconds: 1, queueCacheIntervalSeconds: 1 }),
  });
  boss.on('error', (error) => console.error('pg-boss:', error));
  await boss.start();
  for (let index = 0; index < queues; index++) {
    const name = index === 0 && !servesOther ? 'bench' : `bench-${index}`;
    if (name !== 'bench') await boss.createQueue(name, { notify: listen });
    await boss.work<{ n: number }>(name, work, async (jobs) => {
      for (const { data } of jobs) onJob(data.n);
    });
  }
  return () => boss.stop({ graceful: true, close: true });
};

import type { Fanned, FanRequest } from '../../child/fan.ts';
import { Child } from '../../harness/child.ts';
import type { Sites } from '../../harness/site.ts';
import { startRedis } from '../../systems/bullmq/redis.ts';
import { type Form, ownQueued } from './forms.ts';
import { withDatabase } from './open-database.ts';

/** Parents and children of ours or of a peer. */
export interface FanForm extends Pick<FanRequest, 'engine' | 'options'> {
  readonly name: string;
  readonly setup: string;
  readonly create: Form['create'];
}

export interface FanLoad {
  readonly parents: number;
  /** Of each parent. */
  readonly children: number;
}

const BULLMQ_CONCURRENCY = 100;

/** BullMQ is shown with Redis where there is one. */
export async function fanForms(): Promise<FanForm[]> {
  const redisUrl = await startRedis();
  const own = { engine: 'drizzle-queue', create: ownQueued.create } as const;
  const peer = { create: async () => undefined };
  const onRedis: FanForm[] =
    redisUrl === undefined
      ? []
      : [
          {
            ...peer,
            name: 'BullMQ on Redis, flows',
            setup: `FlowProducer, concurrency ${BULLMQ_CONCURRENCY}`,
            engine: 'bullmq',
            options: { redisUrl, concurrency: BULLMQ_CONCURRENCY },
          },
        ];
  return [
    {
      ...own,
      name: 'drizzle-queue, enqueueFlow',
      setup: 'all jobs are put in by one call; default options',
      options: { by: 'flow' },
    },
    {
      ...own,
      name: 'drizzle-queue, steps',
      setup:
        'each parent enqueues its children with step.enqueueMany and waits with step.all; default options',
      options: { by: 'steps' },
    },
    {
      ...peer,
      name: 'pg-boss, flow()',
      setup:
        'one call of flow(); batchSize 500, burstWhenBatchFull, localConcurrency 4, pollingIntervalSeconds 0.5; ' +
        'resolveFlow() is called every 50 ms',
      engine: 'pg-boss',
    },
    ...onRedis,
  ];
}

/** How long it takes from the first call until all parents have run after their children. */
export async function measureFan(sites: Sites, form: FanForm, load: FanLoad): Promise<Fanned> {
  const { engine, options } = form;
  return await withDatabase(sites, form, async ({ url }) => {
    const child = await Child.start();
    try {
      const request: FanRequest = { engine, options, url, ...load };
      // It is what the measurement answers.
      return (await child.call('measure', 'fan', request)) as Fanned;
    } finally {
      await child.end();
    }
  });
}

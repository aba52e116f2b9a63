import { createPostgresBackend, Queue, runMigrations } from 'bullmq';
import pg from 'pg';
import type { Handling } from '../../child/handling.ts';
import { padBytes, type System } from '../../harness/system.ts';
import { startRedis } from './redis.ts';
import type { BullmqOptions } from './work.ts';

const CHUNK = 500;

async function create(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await runMigrations(client);
  await client.end();
}

const options: BullmqOptions = { concurrency: 24 };

export const bullmqOnPostgres: System = {
  name: 'BullMQ on Postgres',
  setup: 'concurrency 24',
  program: 'bullmq',
  options,
  table: 'bullmq.job',
  share: 0.05,
  create,
  async fill({ url }, fill) {
    await addJobs(new Queue('bench', { connection: url }, createPostgresBackend), fill);
  },
  async anyLeft(sql) {
    const [row] = await sql<{ left: boolean }[]>`
      select exists (select from bullmq.job where state in ('waiting', 'active')) as left`;
    return row?.left ?? false;
  },
};

export function bullmqHandling(name: string, concurrency: number, handling: Handling): System {
  return {
    ...bullmqOnPostgres,
    name: `BullMQ on Postgres, ${name}`,
    setup: `concurrency ${concurrency}`,
    options: { concurrency, handling } satisfies BullmqOptions,
  };
}

/** With its limit of what runs in all processes together. */
export const bullmqLimited: System = {
  ...bullmqOnPostgres,
  name: 'BullMQ on Postgres, limited',
  setup: 'concurrency 24, setGlobalConcurrency(24)',
  async fill(site, fill) {
    const queue = new Queue('bench', { connection: site.url }, createPostgresBackend);
    await queue.setGlobalConcurrency(options.concurrency);
    await queue.close();
    await bullmqOnPostgres.fill(site, fill);
  },
};

/** With a rate that it does not reach. */
export const bullmqRated: System = {
  ...bullmqOnPostgres,
  name: 'BullMQ on Postgres, rated',
  setup: 'concurrency 24, limiter with max 1,000,000 and duration 1,000',
  options: { ...options, limiter: { max: 1_000_000, duration: 1_000 } } satisfies BullmqOptions,
};

/** On Redis, when there is one: to be seen beside Postgres, not to be compared with it (see its `setup`). */
export async function bullmqOnRedis(): Promise<System | undefined> {
  const redisUrl = await startRedis();
  if (redisUrl === undefined) return undefined;
  return {
    name: 'BullMQ on Redis',
    setup:
      'concurrency 24; Redis with an append-only file that is synced every second, so a commit can be lost',
    program: 'bullmq',
    options: { ...options, redisUrl } satisfies BullmqOptions,
    table: 'none',
    share: 0.2,
    create: async () => undefined,
    async fill(_, fill) {
      const queue = new Queue('bench', { connection: { url: redisUrl } });
      if (fill.from === 0) await queue.obliterate({ force: true });
      await addJobs(queue, fill);
    },
    async anyLeft() {
      const queue = new Queue('bench', { connection: { url: redisUrl } });
      const { waiting = 0, active = 0 } = await queue.getJobCounts('waiting', 'active');
      await queue.close();
      return waiting + active > 0;
    },
  };
}

async function addJobs(
  queue: Pick<Queue, 'addBulk' | 'close'>,
  { from, count, payloadBytes }: Parameters<System['fill']>[1],
): Promise<void> {
  const pad = 'x'.repeat(padBytes(payloadBytes));
  for (let n = from; n < from + count; n += CHUNK) {
    const length = Math.min(CHUNK, from + count - n);
    await queue.addBulk(
      Array.from({ length }, (_, index) => ({ name: 'bench', data: { n: n + index, pad } })),
    );
  }
  await queue.close();
}

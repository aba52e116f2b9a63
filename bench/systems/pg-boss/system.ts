import { type JobInsert, PgBoss, type QueuePolicy } from 'pg-boss';
import type postgres from 'postgres';
import type { Handling } from '../../child/handling.ts';
import { padBytes, type System } from '../../harness/system.ts';
import type { PgBossOptions } from './work.ts';

const CHUNK = 5_000;

async function createTables(url: string, notify: boolean, policy: QueuePolicy = 'standard'): Promise<void> {
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  await boss.start();
  await boss.createQueue('bench', { notify, policy });
  await boss.stop({ graceful: false, close: true });
}

const create = (url: string) => createTables(url, false);
const createListening = (url: string) => createTables(url, true);
const createInOrder = (url: string) => createTables(url, false, 'key_strict_fifo');

/** @param ofJob what else a job is inserted with, by its number */
function pgBoss(
  name: string,
  setup: string,
  options: PgBossOptions,
  ofJob: (n: number) => Partial<JobInsert> = () => ({}),
): System {
  return {
    name: `pg-boss, ${name}`,
    setup,
    program: 'pg-boss',
    options,
    table: 'pgboss.job_common',
    create: options.listen ? createListening : create,
    async fill({ url, sql }, { from, count, payloadBytes }) {
      const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
      await boss.start();
      const pad = 'x'.repeat(padBytes(payloadBytes));
      await sql.begin(async (tx) => {
        const db = {
          executeSql: async (text: string, values: unknown[] = []) => ({
            rows: await tx.unsafe(text, values as postgres.ParameterOrJSON<never>[]),
          }),
        };
        for (let n = from; n < from + count; n += CHUNK) {
          const length = Math.min(CHUNK, from + count - n);
          const jobs = Array.from({ length }, (_, index) => ({
            data: { n: n + index, pad },
            ...ofJob(n + index),
          }));
          await boss.insert('bench', jobs, { db });
        }
      });
      await boss.stop({ graceful: false, close: true });
    },
    async anyLeft(sql) {
      const [row] = await sql<{ left: boolean }[]>`
        select exists (select from pgboss.job_common where name = 'bench' and state < 'completed') as left`;
      return row?.left ?? false;
    },
  };
}

const BEST = 'batchSize 500, burstWhenBatchFull, localConcurrency 4, pollingIntervalSeconds 0.5';
const best = { batchSize: 500, burstWhenBatchFull: true, localConcurrency: 4, pollingIntervalSeconds: 0.5 };

/** The fastest that it can be set to. */
export const pgBossBest = pgBoss('best', BEST, { work: best, listen: false });

/** Handlers that take a whole batch, and do for all of its jobs at once what each asks for. */
export function pgBossHandling(
  name: string,
  { batchSize, localConcurrency }: { readonly batchSize: number; readonly localConcurrency: number },
  handling: Handling,
): System {
  return pgBoss(
    name,
    `batchSize ${batchSize}, burstWhenBatchFull, localConcurrency ${localConcurrency}, pollingIntervalSeconds 0.5; its handler does all jobs of its batch at once`,
    { work: { ...best, batchSize, localConcurrency }, listen: false, handling },
  );
}

/** A transaction per job, which `transactional` opens and in which it ends the job. */
export function pgBossTransactional(name: string, localConcurrency: number): System {
  return pgBoss(
    name,
    `transactional, batchSize 1, localConcurrency ${localConcurrency}, burstWhenReadyExceeds 1, its counts taken every second`,
    {
      work: { burstWhenReadyExceeds: 1, pollingIntervalSeconds: 0.5, localConcurrency },
      listen: false,
      counts: true,
      ordersInside: true,
      poolSize: localConcurrency + 5,
    },
  );
}

/** The jobs of a key run one after the other. With a single key no batch is full, so that one counts what waits. */
export function pgBossInOrder(name: string, keyOf: (n: number) => string, single: boolean): System {
  const options: PgBossOptions = single
    ? { work: { burstWhenReadyExceeds: 1, pollingIntervalSeconds: 0.5 }, listen: false, counts: true }
    : { work: best, listen: false };
  const setup = single ? 'batchSize 1, burstWhenReadyExceeds 1, its counts taken every second' : BEST;
  return {
    ...pgBoss(name, `${setup}, a queue with the policy key_strict_fifo`, options, (n) => ({
      singletonKey: keyOf(n),
    })),
    create: createInOrder,
    share: 0.02,
  };
}

/** At most two jobs of a group run at once. */
export function pgBossGroups(name: string, groupOf: (n: number) => string): System {
  const work = { ...best, groupConcurrency: 2 };
  return {
    ...pgBoss(name, `${BEST}, groupConcurrency 2`, { work, listen: false }, (n) => ({
      group: { id: groupOf(n) },
    })),
    share: 0.1,
  };
}

/** As `work` without options: one job every 2 seconds. */
export const pgBossDefaults: System = {
  ...pgBoss('defaults', 'work() without options', { work: {}, listen: false }),
  share: 0.000_04,
};

/** The quickest that it can be set to. */
export const pgBossListening = pgBoss(
  'listening',
  'useListenNotify, a queue with notify, batchSize 500, burstWhenBatchFull, localConcurrency 4',
  {
    work: { batchSize: 500, burstWhenBatchFull: true, localConcurrency: 4, pollingIntervalSeconds: 0.5 },
    listen: true,
  },
);

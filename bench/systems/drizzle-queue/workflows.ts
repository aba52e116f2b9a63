import { drizzle as drizzleNodePostgres } from 'drizzle-orm/node-postgres';
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js';
import {
  createQueue,
  createWorker,
  type Database,
  defineJob,
  defineSignal,
  handlersFor,
  type Transaction,
  unvalidated,
  type Worker,
  workflowsIn,
} from 'drizzle-queue';
import * as workflows from 'drizzle-queue/schema/workflows';
import pg from 'pg';
import postgres from 'postgres';
import { type Inserting, insertOrder } from '../../child/orders.ts';
import type { OpenEngine, WorkflowInput } from '../../child/workflows.ts';

export interface DrizzleQueueEngineOptions {
  readonly driver: 'postgres.js' | 'node-postgres';
  /** How many connections the app has, which the worker shares. */
  readonly poolSize: number;
}

// As the jobs of other scenarios: what waits must not hinder claims of the same queue and kind.
const job = defineJob('bench', { payload: unvalidated<WorkflowInput>(), queue: 'bench' });
const go = defineSignal('go', unvalidated<undefined>());
const keyOf = (n: number) => `workflow-${n}`;
const CHUNK = 5_000;

/** A worker of a queue with workflows; each workflow is a job, whose result is kept. */
export const openEngine: OpenEngine = async ({ url, concurrency, works, options }, notes) => {
  const { driver, poolSize } = options as DrizzleQueueEngineOptions;
  const { db, close } =
    driver === 'postgres.js' ? onPostgresJs(url, poolSize) : onNodePostgres(url, poolSize);
  const queue = createQueue({ workflows: workflowsIn(workflows) });
  const { handle } = handlersFor<AppDatabase, typeof queue>();
  /** Of those that this process waits for, by number. */
  const ends = new Map<number, { resolve(): void; reject(error: unknown): void }>();

  let worker: Worker | undefined;
  if (works) {
    worker = createWorker(db, {
      queue,
      concurrency,
      log: false,
      handlers: [
        handle(job, async ({ payload, step }) => {
          await notes.carryOut(payload, {
            run: (name, result) => step.run(name, () => result),
            order: (name) => step.transaction(name, (tx) => insertOrder(tx)),
            waitForSignal: () => step.waitForSignal(go),
            sleep: (ms) => step.sleep('sleep', ms),
          });
        }),
      ],
    });
    worker.on('completed', ({ job: { payload } }) => ends.get(numberIn(payload))?.resolve());
    worker.on('failed', ({ job: { payload }, error }) => ends.get(numberIn(payload))?.reject(error));
    await worker.start();
  }

  async function signal(n: number): Promise<void> {
    const sent = await queue.workflows.signal(db, { job, uniqueKey: keyOf(n) }, go);
    if (sent !== 'sent') throw new Error(`The signal to ${n}: ${sent}`);
  }

  return {
    async run(input) {
      const end = new Promise<void>((resolve, reject) => ends.set(input.n, { resolve, reject }));
      await Promise.all([queue.enqueue(db, job, input), end]);
      ends.delete(input.n);
    },
    async put(inputs) {
      for (let from = 0; from < inputs.length; from += CHUNK) {
        const jobs = inputs.slice(from, from + CHUNK).map((payload) => {
          const isSignalled = payload.shape === 'wait' || payload.shape === 'replay';
          return { payload, ...(isSignalled && { uniqueKey: keyOf(payload.n) }) };
        });
        await queue.enqueueMany(db, job, jobs);
      }
    },
    signal,
    replay: ({ n }) => signal(n),
    async close() {
      await worker?.stop();
      await close();
    },
  };
};

/** A database of either driver. */
interface AppDatabase extends Database {
  transaction<T>(run: (tx: AppTransaction) => Promise<T>): Promise<T>;
}
type AppTransaction = Transaction & Inserting;

function onPostgresJs(url: string, max: number) {
  const client = postgres(url, { max, onnotice: () => {} });
  return { db: drizzlePostgresJs({ client }), close: () => client.end() };
}

function onNodePostgres(url: string, max: number) {
  const client = new pg.Pool({ connectionString: url, max });
  return { db: drizzleNodePostgres({ client }), close: () => client.end() };
}

function numberIn(payload: unknown): number {
  // It is what was enqueued.
  return (payload as WorkflowInput).n;
}

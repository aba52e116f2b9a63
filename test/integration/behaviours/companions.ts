import assert from 'node:assert/strict';
import { createQueue, createWorker, type Database, defineJob, handle } from 'drizzle-queue';

const queue = createQueue();
/** Nobody enqueues it. */
const never = defineJob('never', { queue: 'companions' });

/** Workers that run on the same client as those of the behaviours, as in an app with several workers. */
export interface Companions {
  /** Stops them. @throws when one of them was in doubt about another that lived */
  stop(): Promise<void>;
}

/** Starts workers on a client: idle ones, which listen and hold their sessions beside whatever else happens there. */
export async function startCompanions(db: Database, count: number): Promise<Companions> {
  const gone: string[] = [];
  const workers = Array.from({ length: count }, (_, n) => {
    const worker = createWorker(db, {
      queue,
      log: false,
      handlers: [handle(never, () => {})],
      name: `companion ${n}`,
    });
    // Connections are lost on purpose.
    worker.on('error', () => undefined);
    worker.on('gone', ({ name }) => gone.push(name));
    return worker;
  });
  await Promise.all(workers.map((worker) => worker.start()));
  return {
    async stop() {
      await Promise.all(workers.map((worker) => worker.stop()));
      assert.deepEqual(gone, []);
    },
  };
}

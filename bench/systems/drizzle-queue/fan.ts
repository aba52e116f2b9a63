import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, defineJob, handlersFor, unvalidated, workflowsIn } from 'drizzle-queue';
import * as workflows from 'drizzle-queue/schema/workflows';
import postgres from 'postgres';
import type { OpenFan } from '../../child/fan.ts';

export interface DrizzleQueueFanOptions {
  /** `flow`: all jobs are put in at once; `steps`: each parent is a job that enqueues its children itself. */
  readonly by: 'flow' | 'steps';
}

const child = defineJob('child', {
  payload: unvalidated<undefined>(),
  queue: 'child',
  keepResult: 'outcome',
});
const last = defineJob('last', { payload: unvalidated<undefined>(), queue: 'parent' });
const parent = defineJob('parent', { payload: unvalidated<{ children: number }>(), queue: 'parent' });

/** A worker with default options. */
export const openFan: OpenFan = async ({ url, options }, onParent) => {
  const { by } = options as DrizzleQueueFanOptions;
  const client = postgres(url, { onnotice: () => {} });
  const db = drizzle({ client });
  const queue = createQueue({ workflows: workflowsIn(workflows) });
  const { handle } = handlersFor<typeof db, typeof queue>();
  const worker = createWorker(db, {
    queue,
    log: false,
    handlers: [
      handle(child, () => undefined),
      handle(last, () => onParent()),
      handle(parent, async ({ payload: { children }, step }) => {
        const entries = Array.from({ length: children }, () => ({}));
        await step.all('ended', await step.enqueueMany('children', child, entries));
        onParent();
      }),
    ],
  });
  await worker.start();
  return {
    async put(parents, children) {
      if (by === 'steps') {
        const entries = Array.from({ length: parents }, () => ({ payload: { children } }));
        await queue.enqueueMany(db, parent, entries);
        return;
      }
      await queue.workflows.enqueueFlow(db, (flow) => {
        for (let at = 0; at < parents; at++) {
          flow.add(last, undefined, { after: Array.from({ length: children }, () => flow.add(child)) });
        }
      });
    },
    async close() {
      await worker.stop();
      await client.end();
    },
  };
};

import { type FlowJob, PgBoss } from 'pg-boss';
import type { OpenFan } from '../../child/fan.ts';

const work = { batchSize: 500, burstWhenBatchFull: true, localConcurrency: 4, pollingIntervalSeconds: 0.5 };
/** It looks for parents whose children have ended once a second, at best; asked for it, at any time. */
const RESOLVE_EVERY_MS = 50;

/** `flow()`, and its best settings. What it calls a dependent is the parent here. */
export const openFan: OpenFan = async ({ url }, onParent) => {
  const boss = new PgBoss({ connectionString: url, flowIntervalSeconds: 1 });
  boss.on('error', (error) => console.error('pg-boss:', error));
  await boss.start();
  await boss.createQueue('child');
  await boss.createQueue('parent');
  await boss.work('child', work, async () => undefined);
  await boss.work('parent', work, async (jobs) => {
    for (const _ of jobs) onParent();
  });
  let isClosed = false;
  const resolving = (async () => {
    while (!isClosed) {
      await boss.resolveFlow();
      await new Promise((resolve) => setTimeout(resolve, RESOLVE_EVERY_MS));
    }
  })();
  return {
    async put(parents, children) {
      const jobs: FlowJob[] = [];
      for (let parent = 0; parent < parents; parent++) {
        const refs = Array.from({ length: children }, (_, child) => `child-${parent}-${child}`);
        jobs.push(...refs.map((ref) => ({ ref, name: 'child' })));
        jobs.push({ ref: `parent-${parent}`, name: 'parent', dependsOn: refs });
      }
      await boss.flow(jobs);
    },
    async close() {
      isClosed = true;
      await resolving;
      await boss.stop({ graceful: true, close: true });
    },
  };
};

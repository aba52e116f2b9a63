import type { Attributes, Meter } from '@opentelemetry/api';
import { createQueue, defineJob, drain, fixedBackoff, handlersFor, workflowsIn } from 'drizzle-queue';
import { otelSteps } from 'drizzle-queue/opentelemetry';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { beforeAll, expect, test } from 'vitest';
import { addWorkflowTables } from '../support/control-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
beforeAll(() => addWorkflowTables(database));

test('steps are counted and timed by kind and outcome, without their names', async () => {
  const noted: { readonly name: string; readonly seconds: number; readonly attributes: Attributes }[] = [];
  const meter = {
    createHistogram: (name: string) => ({
      record: (seconds: number, attributes: Attributes) => noted.push({ name, seconds, attributes }),
    }),
  };
  // Only what it is asked for.
  const observe = otelSteps({ meter: meter as unknown as Meter });
  const queue = createQueue({ workflows: workflowsIn(workflowTables, { observe }) });
  const { handle } = handlersFor<typeof database.db, typeof queue>();
  const fulfil = defineJob('fulfil', { queue: 'orders', backoff: fixedBackoff(0) });
  await queue.enqueue(database.db, fulfil);
  const handler = handle(fulfil, async ({ step, job }) => {
    await step.run('charge-4711', () => 1);
    await step.run('ship', { attempts: 3 }, () => {
      if (job.errors.length < 1) throw new TypeError('no parcels');
    });
    await step.sleep('late', 3_600_000);
  });
  await drain(database.db, { queue, handlers: [handler], deadlineMs: 20_000, log: false });
  expect(noted.map(({ attributes }) => attributes['drizzle_queue.step.outcome'])).toEqual([
    'done',
    'failed',
    'done',
    'waiting',
  ]);
  expect(noted[0]?.attributes).toEqual({
    'messaging.system': 'drizzle_queue',
    'messaging.destination.name': 'orders',
    'drizzle_queue.job.kind': 'fulfil',
    'drizzle_queue.step.kind': 'run',
    'drizzle_queue.step.outcome': 'done',
  });
  expect(noted.every(({ name, seconds }) => name === 'drizzle_queue.step.duration' && seconds >= 0)).toBe(
    true,
  );
  expect(() => otelSteps({ meter: {} as Meter })).toThrow('otelSteps: meter must be');
});

import { createQueue, defineJob, drain, handle } from 'drizzle-queue';
import { expect, onTestFinished, test, vi } from 'vitest';
import { useTestDatabase } from '../support/test-database.ts';
import { until } from '../support/until.ts';
import { intercepted } from './support/executors.ts';

const database = useTestDatabase();
const queue = createQueue();
const job = defineJob('j');

test('behind a pooler that lets nobody listen, waits poll, and say so once', async () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
  onTestFinished(() => warned.mockRestore());
  const heard: string[] = [];
  // As PgBouncer in transaction mode: LISTEN succeeds, on a connection that is somebody else's the next moment.
  const $client = Object.assign(() => undefined, {
    listen: async (channel: string, _: unknown, onListen: () => void) => {
      heard.push(channel);
      // The driver's answer comes later.
      await new Promise(setImmediate);
      onListen();
      return { unlisten: async () => undefined };
    },
  });
  const db = Object.assign(
    intercepted(database.db, async () => undefined),
    { $client },
  );
  const running = [1, 2].map(() => queue.run(db, job, undefined, { awaited: true }));
  // The first notification to itself has not come back within its 5 seconds, and it has tried again.
  await until(() => heard.length > 1, { timeoutMs: 40_000 });
  expect(warned).toHaveBeenCalledOnce();
  expect(warned.mock.calls[0]?.[0]).toContain('behind PgBouncer in transaction mode');
  await drain(database.db, { queue, handlers: [handle(job, () => 'done')], deadlineMs: 60_000 });
  expect(await Promise.all(running)).toEqual(['done', 'done']);
});

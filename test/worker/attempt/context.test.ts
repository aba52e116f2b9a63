import { createQueue, createWorker, defineJob, handle } from 'drizzle-queue';
import { expect, test } from 'vitest';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
const queue = createQueue();
const slow = defineJob('slow', { maxAttempts: 1, timeoutMs: 100 });

test('a copy of the context has all that the context has, its signal too', async () => {
  let reason: unknown;
  let keys: string[] = [];
  const worker = createWorker(database.db, {
    queue,
    handlers: [
      handle(slow, (context) => {
        const copy = { ...context };
        keys = Object.keys(copy).sort();
        expect(copy.signal).toBe(context.signal);
        return new Promise<void>((_, reject) => {
          copy.signal.addEventListener('abort', () => {
            reason = copy.signal.reason;
            reject(reason);
          });
        });
      }),
    ],
  });
  await queue.enqueue(database.db, slow);
  await worker.start();
  await until(() => reason !== undefined);
  await worker.stop();
  expect(keys).toEqual(['complete', 'db', 'job', 'payload', 'signal']);
  expect(reason).toMatchObject({ name: 'JobTimeoutError' });
});

test('step of a queue without workflows says what to write', async () => {
  const worker = createWorker(database.db, {
    queue,
    handlers: [
      handle(slow, async (context) => {
        expect('step' in { ...context }).toBe(false);
        await Reflect.get(context, 'step').run('charge', () => 1);
      }),
    ],
    log: false,
  });
  const { id } = await queue.enqueue(database.db, slow);
  await worker.start();
  const { errors } = await queue.waitFor(database.db, slow, id);
  await worker.stop();
  expect(errors).toMatchObject([
    {
      name: 'QueueError',
      message: expect.stringMatching(
        /^step: .*createQueue\(\{ workflows: workflowsIn\(workflows\) \}\), with/,
      ),
    },
  ]);
});

test('its job is the same at every look, and has what its type says', async () => {
  const jobs: object[] = [];
  const plain = defineJob('plain');
  const worker = createWorker(database.db, {
    queue,
    handlers: [
      handle(plain, (context) => {
        jobs.push(context.job, context.job, { ...context }.job);
      }),
    ],
  });
  const { id } = await queue.enqueue(database.db, plain, undefined, { metadata: { tenant: 'a' } });
  await worker.start();
  await until(() => jobs.length > 0);
  await worker.stop();
  expect(new Set(jobs).size).toBe(1);
  expect(jobs[0]).toMatchObject({ id, kind: 'plain', attempt: 1, metadata: { tenant: 'a' } });
  expect(Object.keys(jobs[0] ?? {}).sort()).toEqual(
    'attempt claimedAt createdAt errors fence id kind maxAttempts metadata payloadBytes priority progress queue runAt uniqueKey'.split(
      ' ',
    ),
  );
});

import { createQueue, createWorker, defineJob, handle } from 'drizzle-queue';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { servedQueues } from '../../src/core/worker/served-queues.ts';
import { untouched } from '../queue/support/executors.ts';

const handlers = [
  handle(defineJob('send', { queue: 'mail' }), () => {}),
  handle(defineJob('sync'), () => {}),
];
const concurrencies = (given: Omit<Parameters<typeof servedQueues>[1], 'handlers'>) =>
  Object.fromEntries(
    [...servedQueues('createWorker', { handlers, ...given })].map(([queue, { concurrency }]) => [
      queue,
      concurrency,
    ]),
  );

test('more than 10,000 queues are refused, also where only the handlers name them', () => {
  const names = Array.from({ length: 10_001 }, (_, n) => `q${n}`);
  const many = names.map((queue) => handle(defineJob(`of ${queue}`, { queue }), () => {}));
  const message = 'createWorker: a worker serves at most 10000 queues, got 10001';
  expect(() => servedQueues('createWorker', { handlers: many })).toThrow(message);
  const queues = Object.fromEntries(names.map((name) => [name, {}]));
  expect(() => servedQueues('createWorker', { handlers, queues })).toThrow(message);
  expect(servedQueues('createWorker', { handlers: many.slice(1) }).size).toBe(10_000);
});

test.each(['mail', 'constructor', 'toString'])(
  'a handler of the queue %s, which is not served, is a warning',
  (name) => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue();
    onTestFinished(() => warned.mockRestore());
    const job = defineJob('lost', { queue: name });
    servedQueues('createWorker', {
      handlers: [...handlers, handle(job, () => {})],
      queues: { mail: {}, default: {}, [name]: {} },
    });
    expect(warned).not.toHaveBeenCalled();
    servedQueues('createWorker', { handlers: [handle(job, () => {})], queues: { other: {} } });
    expect(warned.mock.calls).toEqual([
      [expect.stringContaining(`'lost', whose queue '${name}' is not among`), expect.anything()],
    ]);
  },
);

describe('how many jobs of a queue run at once', () => {
  test('ten, unless the worker or the queue says', () => {
    expect(concurrencies({})).toEqual({ mail: 10, default: 10 });
    expect(concurrencies({ concurrency: 3 })).toEqual({ mail: 3, default: 3 });
    const queues = { mail: { concurrency: 20 }, default: {} };
    expect(concurrencies({ queues })).toEqual({ mail: 20, default: 10 });
    expect(concurrencies({ concurrency: 3, queues })).toEqual({ mail: 20, default: 3 });
    expect(concurrencies({ concurrency: undefined, queues: { mail: { concurrency: undefined } } })).toEqual({
      mail: 10,
    });
  });

  test.each([0, 1.5, 10_001, '5'])('%o is refused, and the option is named', (concurrency) => {
    const given = { queue: createQueue(), handlers, concurrency } as Parameters<typeof createWorker>[1];
    const db = { ...untouched(), transaction: async () => await Promise.reject(new Error('not used')) };
    expect(() => createWorker(db, given)).toThrow('createWorker: concurrency must be a whole number from 1');
  });
});

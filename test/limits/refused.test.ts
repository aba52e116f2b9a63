import { createQueue, createWorker, defineJob, handle, handleBatch, limitsIn } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { expect, test } from 'vitest';
import { untouched } from '../queue/support/executors.ts';

const queue = createQueue({
  limits: limitsIn(control, {
    ordered: { groups: { serial: 'end' } },
    few: { concurrency: 3 },
    kinds: { kinds: { slow: { concurrency: 1 }, free: {}, rated: { rate: { limit: 10, perMs: 1_000 } } } },
    open: {},
    shared: { groups: { concurrency: 2 }, rate: { limit: 10, perMs: 1_000 } },
  }),
});
// Nothing is sent before a start.
const db = { ...untouched(), transaction: async () => Promise.reject(new Error('not sent')) };
const batch = (kind: string, name: string) =>
  handleBatch(defineJob(kind, { queue: name }), { maxSize: 10, maxWaitMs: 100 }, () => undefined);
const single = (kind: string, name: string) => handle(defineJob(kind, { queue: name }), () => undefined);

test.each([
  ['a', 'ordered', "handleBatch('a'): the jobs of a group run one after the other in its queue 'ordered'"],
  ['a', 'few', "handleBatch('a'): a limit of the concurrency counts single jobs, not batches"],
  ['slow', 'kinds', "handleBatch('slow'): a limit of the concurrency counts single jobs, not batches"],
  // They may get one at run time.
  ['free', 'kinds', "handleBatch('free'): a limit of the concurrency counts single jobs, not batches"],
  ['a', 'open', "handleBatch('a'): a limit of the concurrency counts single jobs, not batches"],
])('a batch handler of %s in the queue %s is refused', (kind, name, message) => {
  expect(() => createWorker(db as never, { queue, handlers: [batch(kind, name)] })).toThrow(message);
});

test.each([
  [
    'ordered',
    "run one after the other in the queue 'ordered', which this worker serves: serve it by another",
  ],
  [
    'few',
    "the queue 'few' has one, or may get one at run time, which this worker serves: serve it by another, without this handler",
  ],
])('so is one of another queue beside the queue %s, into which its jobs may be put', (name, message) => {
  const handlers = [single('a', name), batch('b', 'default')];
  expect(() => createWorker(db as never, { queue, handlers })).toThrow(message);
});

test.each([
  ['rated', 'kinds'],
  ['a', 'shared'],
  ['a', 'default'],
])('one of %s in the queue %s is not', (kind, name) => {
  expect(() => createWorker(db as never, { queue, handlers: [batch(kind, name)] })).not.toThrow();
});

test.each([
  ['shared', 'its jobs are in groups, which take turns, so aging does not apply'],
  ['ordered', 'its jobs are in groups'],
  ['kinds', 'kinds with limits are claimed separately, so aging does not apply'],
])('aging in the queue %s is refused', (name, message) => {
  const options = {
    queue,
    handlers: [single('a', name)],
    queues: { [name]: { aging: { afterMs: 1_000 } } },
  };
  expect(() => createWorker(db as never, options)).toThrow(`queues['${name}'].aging: ${message}`);
});

test('a concurrency of groups that run one after the other', () => {
  const groups = { serial: 'end', concurrency: 2 } as const;
  expect(() => limitsIn(control, { ordered: { groups } })).toThrow(
    'serial and concurrency cannot be combined: serial means one at a time',
  );
});

test('beside a limit of the queue alone jobs may age', () => {
  const options = { queue, handlers: [single('a', 'few')], queues: { few: { aging: { afterMs: 1_000 } } } };
  expect(() => createWorker(db as never, options)).not.toThrow();
});

import { expect, test } from 'vitest';
import { NotifyRate } from '../../src/queue/notify-rate.ts';

/** Enqueues of one process for a while, beside those of others: ids of all come from one sequence. */
function enqueueing({ everyMs, others = 0 }: { everyMs: number; others?: number }, forMs = 1_000) {
  const clock = { ms: 0 };
  const rate = new NotifyRate(() => clock.ms);
  let id = 0;
  const go = (ms: number, queue = 'a') => {
    for (const end = clock.ms + ms; clock.ms < end; clock.ms += everyMs) {
      id += 1 + others;
      rate.note([queue], [id]);
    }
  };
  go(forMs);
  return { clock, rate, go };
}

test.each([
  ['nobody has enqueued', new NotifyRate(() => 0), 4],
  ['it is alone and seldom enqueues', enqueueing({ everyMs: 10 }).rate, 4],
  ['it is alone and enqueues 10,000 a second', enqueueing({ everyMs: 0.1 }).rate, 4],
  ['all together enqueue fewer than 250 a second', enqueueing({ everyMs: 20, others: 3 }).rate, 4],
  ['half of the jobs are its own', enqueueing({ everyMs: 1, others: 1 }).rate, 8],
  ['a fifth is', enqueueing({ everyMs: 1, others: 4 }).rate, 20],
  ['a thousandth is', enqueueing({ everyMs: 5, others: 999 }).rate, 50],
])('where %s', (_, rate, intervalMs) => {
  expect(rate.intervalMs('a')).toBeCloseTo(intervalMs, 0);
});

test('queues of one process share as processes do, and one that is new among many jobs gets little', () => {
  const { rate, go } = enqueueing({ everyMs: 0.5 });
  for (let n = 0; n < 2_000; n++) {
    go(0.5, 'a');
    go(0.5, 'b');
  }
  expect(rate.intervalMs('a')).toBeCloseTo(8, 0);
  expect(rate.intervalMs('b')).toBeCloseTo(8, 0);
  expect(rate.intervalMs('c')).toBe(50);
});

test('what it has learnt is forgotten where it no longer enqueues', () => {
  const { clock, rate } = enqueueing({ everyMs: 1, others: 9 });
  clock.ms += 2_000;
  expect(rate.intervalMs('a')).toBe(4);
});

test('ids of jobs that stood already, and none, say nothing', () => {
  const { clock, rate } = enqueueing({ everyMs: 10 });
  for (let n = 0; n < 100; n++, clock.ms += 10) rate.note(['a'], [undefined, 1]);
  expect(rate.intervalMs('a')).toBe(4);
});

import { expect, test } from 'vitest';
import { NotifyRate } from '../../src/core/queue/enqueue/notify-rate.ts';

/** Enqueues of one process for a second, beside those of others: ids of all come from one sequence. */
function enqueueing({ everyMs, others = 0 }: { everyMs: number; others?: number }) {
  const clock = { ms: 0 };
  const rate = new NotifyRate(() => clock.ms);
  for (let id = 0; clock.ms < 1_000; clock.ms += everyMs) {
    id += 1 + others;
    rate.note([id]);
  }
  return { clock, rate };
}

test.each([
  ['nobody has enqueued', new NotifyRate(() => 0), 4],
  ['it is alone and seldom enqueues', enqueueing({ everyMs: 10 }).rate, 4],
  ['it is alone and enqueues 1,000 a second', enqueueing({ everyMs: 1 }).rate, 50],
  ['all together enqueue 200 a second', enqueueing({ everyMs: 20, others: 3 }).rate, 4],
  ['all together enqueue 500 a second', enqueueing({ everyMs: 20, others: 9 }).rate, 50],
  ['others enqueue many', enqueueing({ everyMs: 500, others: 999 }).rate, 50],
])('where %s', (_, rate, intervalMs) => {
  expect(rate.intervalMs).toBe(intervalMs);
});

test('what it has learnt is forgotten where it no longer enqueues, and where fewer jobs come', () => {
  const { clock, rate } = enqueueing({ everyMs: 1 });
  clock.ms += 2_000;
  expect(rate.intervalMs).toBe(4);
  const slower = enqueueing({ everyMs: 1 });
  for (let id = 1_001; id < 1_020; id++, slower.clock.ms += 20) slower.rate.note([id]);
  expect(slower.rate.intervalMs).toBe(4);
});

test('ids of jobs that stood already, and none, say nothing', () => {
  const { clock, rate } = enqueueing({ everyMs: 10 });
  for (let n = 0; n < 100; n++, clock.ms += 10) rate.note([undefined, 1]);
  expect(rate.intervalMs).toBe(4);
});

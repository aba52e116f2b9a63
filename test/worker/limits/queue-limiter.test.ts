import { expect, onTestFinished, test, vi } from 'vitest';
import { Lease } from '../../../src/features/limits/worker/lease.ts';
import { QueueLimiter } from '../../../src/features/limits/worker/queue-limiter.ts';
import { Starts } from '../../../src/features/limits/worker/starts.ts';

const rate = { limit: 10, perMs: 1_000 };

test('a job whose start became void after the look at what may begin does not begin, and the start is given back', () => {
  let nowMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  onTestFinished(() => clock.mockRestore());
  const lease = new Lease({ queue: 'q', kind: '', declared: null });
  const unlimited = { limit: undefined, has: 0, total: 0, sharing: 0, leastLacking: undefined };
  lease.noteLook(unlimited, lease.version, 0);
  const starts = new Starts({ queue: 'q', kind: '', declared: rate });
  const limiter = new QueueLimiter({
    whole: { lease, starts },
    kinds: new Map(),
    concurrency: 5,
    onUse: () => undefined,
  });
  const take = () => {
    const wish = starts.wish(nowMs, { all: 1, first: 1 });
    if (wish === undefined) throw new TypeError('It asks for none');
    starts.noteSent(wish, nowMs);
    starts.noteAnswer({ rate, granted: 1, part: '7', left: 9, freeInMs: 1_000, freeThen: 10 }, nowMs);
    return wish;
  };
  const waiting = [{ job: { kind: 'k', cost: 1 } }];
  const [one] = waiting;
  if (one === undefined) throw new TypeError('None waits');

  const { withinMs } = take();
  expect(limiter.next(waiting)).toBe(one);
  nowMs += withinMs;
  expect(limiter.begin(one.job)).toBe(false);
  expect(lease.running).toBe(0);
  expect(limiter.next(waiting)).toBe(undefined);

  expect(take().unspent).toEqual({ 7: 1 });
  expect(limiter.next(waiting)).toBe(one);
  expect(limiter.begin(one.job)).toBe(true);
  expect(lease.running).toBe(1);
  expect(starts.available(nowMs)).toBe(0);
});

test('a job without a slot does not begin, whatever was asked before', () => {
  const lease = new Lease({ queue: 'q', kind: '', declared: 1 });
  const limiter = new QueueLimiter({
    whole: { lease, starts: undefined },
    kinds: new Map(),
    concurrency: 5,
    onUse: () => undefined,
  });
  const job = { kind: 'k', cost: 1 };
  expect(limiter.begin(job)).toBe(false);
  const none = { limit: 1, has: 0, total: 0, sharing: 0, leastLacking: undefined };
  lease.noteLook(none, lease.version, 0);
  const wish = lease.wish(0, 1);
  if (wish === undefined) throw new TypeError('It asks for none');
  lease.noteSent(wish, 0);
  expect(limiter.begin(job)).toBe(false);
  lease.noteAnswer({ ...none, has: 1, total: 1, sharing: 1 }, 0);
  expect(limiter.begin(job)).toBe(true);
  expect(limiter.begin(job)).toBe(false);
  expect(lease.running).toBe(1);
});

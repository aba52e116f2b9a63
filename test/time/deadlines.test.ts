import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Deadlines } from '../../src/core/time/deadlines.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

test('each passes after its time, in ticks of one timer, unless it is removed', () => {
  const deadlines = new Deadlines();
  const passed: string[] = [];
  deadlines.add(1_000, () => passed.push('first'));
  const removed = deadlines.add(1_000, () => passed.push('removed'));
  deadlines.add(3_000, () => passed.push('second'));
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(999);
  expect(passed).toEqual([]);
  expect(deadlines.remove(removed)).toBe(true);
  expect(deadlines.remove(removed)).toBe(false);
  vi.advanceTimersByTime(501);
  expect(passed).toEqual(['first']);
  vi.advanceTimersByTime(2_000);
  expect(passed).toEqual(['first', 'second']);
  vi.advanceTimersByTime(250);
  expect(vi.getTimerCount()).toBe(0);
});

test('time in which the event loop does not turn counts for none', () => {
  const deadlines = new Deadlines();
  const onPassed = vi.fn();
  deadlines.add(1_000, onPassed);
  // The timer is due, and fires a minute late.
  vi.setSystemTime(vi.getMockedSystemTime()?.getTime() ?? 0);
  const now = vi.spyOn(performance, 'now');
  const blockedMs = performance.now() + 60_000;
  now.mockReturnValue(blockedMs);
  vi.advanceTimersByTime(250);
  now.mockRestore();
  expect(onPassed).not.toHaveBeenCalled();
});

test('those that pass may add others, and none is left after the end', () => {
  const deadlines = new Deadlines();
  const passed: number[] = [];
  const again = () => {
    passed.push(passed.length);
    if (passed.length < 3) deadlines.add(500, again);
  };
  deadlines.add(500, again);
  vi.advanceTimersByTime(5_000);
  expect(passed).toEqual([0, 1, 2]);
  deadlines.add(500, again);
  deadlines.end();
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(5_000);
  expect(passed).toHaveLength(3);
});

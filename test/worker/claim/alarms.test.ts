import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Alarms } from '../../../src/core/worker/claim/alarms.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function rings(): { alarms: Alarms; atMs: number[] } {
  const startMs = performance.now();
  const atMs: number[] = [];
  return { alarms: new Alarms(() => atMs.push(performance.now() - startMs)), atMs };
}

test('a later time does not replace an earlier one, nor the other way round', () => {
  const { alarms, atMs } = rings();
  alarms.add(300);
  alarms.add(1_000);
  alarms.add(100);
  vi.advanceTimersByTime(2_000);
  expect(atMs).toHaveLength(3);
  for (const [index, inMs] of [100, 300, 1_000].entries()) {
    expect(atMs[index]).toBeGreaterThanOrEqual(inMs);
    expect(atMs[index]).toBeLessThan(inMs + 12);
  }
});

test('times close together ring once', () => {
  const { alarms, atMs } = rings();
  for (let n = 0; n < 1_000; n++) alarms.add(2_000 * Math.random());
  vi.advanceTimersByTime(3_000);
  expect(atMs.length).toBeLessThanOrEqual(252);
});

test('none rings after they are cleared', () => {
  const { alarms, atMs } = rings();
  alarms.add(100);
  alarms.clear();
  vi.advanceTimersByTime(1_000);
  expect(atMs).toEqual([]);
  alarms.add(100);
  vi.advanceTimersByTime(1_000);
  expect(atMs).toHaveLength(1);
});

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Rest } from '../../../src/core/queue/stats/rest.ts';
import { SharedAnswer } from '../../../src/core/queue/stats/shared-answer.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Answers that share a rest, asked for each second; how long they took, and at what times. */
function asked(rest: Rest, ...tookMs: number[]) {
  const seen = { spentMs: 0, times: [] as number[] };
  const answers = tookMs.map((ms) => ({
    shared: new SharedAnswer<void>(rest),
    ask: async () => {
      vi.advanceTimersByTime(ms);
      seen.spentMs += ms;
      seen.times.push(performance.now());
    },
  }));
  const during = async (forMs: number) => {
    const endMs = performance.now() + forMs;
    while (performance.now() < endMs) {
      for (const { shared, ask } of answers) await shared.get(ask);
      vi.advanceTimersByTime(1_000);
    }
  };
  return { seen, during };
}

describe('answers that share a rest', () => {
  test('cost a quarter of a percent of the time together, and a second besides', async () => {
    const { seen, during } = asked(new Rest(), 10, 50, 200);
    const startMs = performance.now();
    await during(3_600_000);
    const share = (performance.now() - startMs) / 400;
    expect(seen.spentMs).toBeLessThan(share + 1_000 + 260);
    expect(seen.spentMs).toBeGreaterThan(0.9 * share);
  });

  test('are asked for again soon after the first ones, and after nobody has asked for a while', async () => {
    const { seen, during } = asked(new Rest(), 300);
    await during(60_000);
    // The second rest after six seconds, the third after six more; then a second is spent.
    expect(seen.times.length).toBe(4);
    vi.advanceTimersByTime(600_000);
    await during(60_000);
    expect(seen.times.length).toBeGreaterThanOrEqual(7);
  });

  test('never take more than a twentieth of the time', async () => {
    const { seen, during } = asked(new Rest(), 100);
    const startMs = performance.now();
    await during(10_000);
    expect(seen.spentMs).toBeLessThanOrEqual((performance.now() - startMs) / 20 + 100);
  });

  test('rest no longer than they may, however long one has taken', async () => {
    const { seen, during } = asked(new Rest(1_000, 100, 5_000), 2_000);
    await during(60_000);
    const rests = seen.times.slice(1).map((time, at) => time - (seen.times[at] ?? 0) - 2_000);
    expect(rests.length).toBeGreaterThan(5);
    for (const rest of rests) expect(rest).toBeLessThanOrEqual(6_000);
  });

  test('rest from what an answer takes at most, and not from what it has waited', async () => {
    const rest = new Rest();
    rest.mostMs = 25;
    const { seen, during } = asked(rest, 2_000);
    await during(600_000);
    const between = seen.times.slice(1).map((time, at) => time - (seen.times[at] ?? 0));
    // Each is asked for again 400 × 25 ms after it has come, and then takes two seconds.
    expect(between.length).toBeGreaterThan(40);
    for (const ms of between) expect(ms).toBeLessThanOrEqual(10_000 + 2_000 + 1_000);
    // Whoever asks twice for one page gets one answer.
    for (const ms of between) expect(ms).toBeGreaterThanOrEqual(5_000);
  });

  test('rest for ten minutes at most, however long one has taken', async () => {
    const { seen, during } = asked(new Rest(), 60_000);
    await during(1_500_000);
    const [first = 0, second = 0, third = 0] = seen.times;
    expect(second - first).toBeLessThanOrEqual(600_000 + 60_000 + 1_000);
    expect(third - second).toBeLessThanOrEqual(600_000 + 60_000 + 1_000);
  });
});

import { expect, test, vi } from 'vitest';
import { Rest } from '../../../src/queue/stats/rest.ts';
import { SharedAnswer } from '../../../src/queue/stats/shared-answer.ts';

test('answers that share a rest cost half a percent of the time together', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const rest = new Rest();
    let spentMs = 0;
    const asking = (tookMs: number) => async () => {
      vi.advanceTimersByTime(tookMs);
      spentMs += tookMs;
    };
    const answers = [10, 50, 200].map((tookMs) => ({
      shared: new SharedAnswer<void>(rest),
      ask: asking(tookMs),
    }));
    const startMs = performance.now();
    while (performance.now() - startMs < 3_600_000) {
      for (const { shared, ask } of answers) await shared.get(ask);
      vi.advanceTimersByTime(1_000);
    }
    expect(spentMs / (performance.now() - startMs)).toBeLessThan(0.0051);
    expect(spentMs).toBeGreaterThan(3 * 260);
  } finally {
    vi.useRealTimers();
  }
});

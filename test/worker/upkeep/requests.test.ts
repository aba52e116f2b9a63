import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { Retries } from '../../../src/core/time/retries.ts';
import { WorkerEmitter } from '../../../src/core/worker/base/events.ts';
import { Requests } from '../../../src/core/worker/upkeep/requests.ts';
import { tables } from '../../queries/support/jobs.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** The looks of a worker whose database answers at once that nothing is asked for, with their times. */
async function looking(listening: boolean): Promise<{ requests: Requests; looksMs: number[] }> {
  const looksMs: number[] = [];
  const requests = new Requests({
    db: {
      execute: async () => {
        looksMs.push(performance.now());
        return [];
      },
    },
    tables,
    workerId: 1,
    loops: [],
    listener: { listening },
    events: new WorkerEmitter(),
    retries: new Retries(),
  });
  const over = new AbortController();
  const run = requests.run(over.signal);
  onTestFinished(async () => {
    over.abort();
    await run;
  });
  await requests.ready;
  return { requests, looksMs };
}

test.each([0, 0.5, 0.999])(
  'a worker without notifications looks well within each second, at random %f',
  async (random) => {
    vi.spyOn(Math, 'random').mockReturnValue(random);
    const { looksMs } = await looking(false);
    await vi.advanceTimersByTimeAsync(20_000);
    const gaps = looksMs.slice(1).map((atMs, n) => atMs - (looksMs[n] ?? 0));
    expect(gaps.length).toBeGreaterThan(20);
    expect(Math.max(...gaps)).toBeLessThan(700);
  },
);

test('a worker that hears of a request looks at once, and otherwise seldom', async () => {
  const { requests, looksMs } = await looking(true);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(looksMs).toHaveLength(1);
  requests.wake();
  await vi.advanceTimersByTimeAsync(100);
  expect(looksMs).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(looksMs.length).toBeGreaterThan(2);
});

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Background } from '../../src/core/worker/base/background.ts';
import { WorkerEmitter } from '../../src/core/worker/base/events.ts';
import { type StopOptions, stopGracefully } from '../../src/core/worker/stop.ts';

/** What `stop` promises beyond the handlers' time. */
const PROMISED_MS = 5_000;
const SHUTDOWN_MS = 1_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const STEPS = ['handlers', 'settling', 'giveBack', 'leave', 'write', 'background'] as const;
type Step = (typeof STEPS)[number];

/**
 * Stops a worker some of whose steps do not do what they should; the others are done at once.
 *
 * @param bad what such a step does instead
 * @param startTookMs how long the stop has waited for a start before
 * @returns after how many milliseconds the stop was over
 */
async function stopWith(
  badSteps: readonly Step[],
  bad: () => Promise<void>,
  startTookMs = 0,
): Promise<number> {
  const step = (name: Step) => () => (badSteps.includes(name) ? bad() : Promise.resolve());
  const events = new WorkerEmitter();
  events.on('error', () => undefined);
  const background = new Background(events);
  background.start([{ run: step('background') }]);
  let interrupt = () => {};
  const interrupted = new Promise<void>((resolve) => {
    interrupt = resolve;
  });
  const loop = {
    attempts: { busy: 1 },
    stop: () => undefined,
    interrupt: () => interrupt(),
    finished: async () => {
      if (badSteps.includes('handlers')) await interrupted;
      await step('settling')();
    },
    holdings: { giveBack: step('giveBack') },
  };
  const parts = {
    loops: [loop],
    liveness: { leave: step('leave') },
    requests: { wake: () => undefined },
    features: [{ write: step('write') }],
  };
  let tookMs = Number.NaN;
  const startMs = performance.now();
  const stopped = stopGracefully({
    parts: parts as unknown as StopOptions['parts'],
    background,
    work: Promise.resolve(),
    events,
    shutdownTimeoutMs: SHUTDOWN_MS,
    startTookMs,
    giveUp: new AbortController(),
  }).then(() => {
    tookMs = performance.now() - startMs;
  });
  await vi.advanceTimersByTimeAsync(60_000);
  await stopped;
  return tookMs;
}

const hang = () => new Promise<never>(() => {});

test('a stop whose steps are done at once takes no time', async () => {
  expect(await stopWith([], hang)).toBe(0);
});

test.each([...STEPS.map((step) => ({ steps: [step], what: step })), { steps: [...STEPS], what: 'all' }])(
  'takes 5 seconds at most where its steps hang: $what',
  async ({ steps }) => {
    const tookMs = await stopWith(steps, hang);
    const handlersMs = steps.some((step) => step === 'handlers' || step === 'settling') ? SHUTDOWN_MS : 0;
    expect(tookMs).toBeGreaterThan(0);
    expect(tookMs).toBeLessThanOrEqual(handlersMs + PROMISED_MS);
  },
);

test('takes no longer where it has waited for a start before', async () => {
  const startTookMs = 2_900;
  const tookMs = await stopWith(['leave'], hang, startTookMs);
  expect(tookMs).toBeGreaterThan(1_000);
  expect(startTookMs + tookMs).toBeLessThanOrEqual(PROMISED_MS);
});

test.each(['giveBack', 'leave'] as const)('tries %s again where it fails, for no longer', async (step) => {
  let tries = 0;
  const tookMs = await stopWith([step], async () => {
    tries++;
    // As long as a statement may wait for a lock.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    throw new Error('not now');
  });
  expect(tries).toBeGreaterThan(1);
  expect(tookMs).toBeLessThanOrEqual(PROMISED_MS);
});

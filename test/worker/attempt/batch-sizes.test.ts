import { defineJob, handle, handleBatch } from 'drizzle-queue';
import { describe, expect, test } from 'vitest';
import { mostInBatch } from '../../../src/core/worker/begin/precious-attempt.ts';
import { SlotUse } from '../../../src/features/batch-handlers/slot-use.ts';

describe('SlotUse', () => {
  const single = handle(defineJob('single', { queue: 'q' }), () => {});
  const elsewhere = handle(defineJob('elsewhere'), () => {});
  const ten = handleBatch(defineJob('ten', { queue: 'q' }), { maxSize: 10 }, () => {});
  const hundred = handleBatch(defineJob('hundred', { queue: 'q' }), { maxSize: 100 }, () => {});
  const times = <T>(n: number, value: T) => new Array<T>(n).fill(value);

  test('is one where all handlers are for single jobs, whatever is claimed', () => {
    const use = new SlotUse([single, elsewhere], 'q');
    use.note(times(100, single));
    expect(use.jobsPerSlot).toBe(1);
  });

  test('is the size of the batches where the queue has no others', () => {
    const use = new SlotUse([hundred, elsewhere], 'q');
    expect(use.jobsPerSlot).toBeCloseTo(100);
    use.note(times(100, hundred));
    expect(use.jobsPerSlot).toBeCloseTo(100);
  });

  test('follows what is claimed, from the least on', () => {
    const use = new SlotUse([ten, hundred], 'q');
    expect(use.jobsPerSlot).toBeCloseTo(10);
    use.note(times(200, hundred));
    expect(use.jobsPerSlot).toBeGreaterThan(95);
    use.note(times(200, ten));
    expect(use.jobsPerSlot).toBeCloseTo(10, 1);
  });

  test('is never much where single jobs may come', () => {
    const use = new SlotUse([single, hundred], 'q');
    expect(use.jobsPerSlot).toBe(1);
    use.note(times(500, hundred));
    expect(use.jobsPerSlot).toBe(20);
    use.note(times(100, single));
    expect(use.jobsPerSlot).toBeLessThan(1.1);
  });
});

describe('mostInBatch', () => {
  type Job = Parameters<typeof mostInBatch>[0];
  const job = (attempt: number, maxAttempts: number, lastError?: number) =>
    ({
      attempt,
      maxAttempts,
      errors: lastError === undefined ? [] : [{ attempt: lastError }],
    }) as unknown as Job;

  test.each([
    ['first attempts', job(1, 20), 100],
    ['a retry after an error', job(3, 20, 2), 100],
    ['a last attempt after an error', job(3, 3, 2), 100],
    ['the only attempt', job(1, 1), 100],
    ['one death', job(2, 20), 12],
    ['two deaths', job(3, 20), 1],
    ['a death after an error', job(3, 20, 1), 12],
    ['a last attempt after a death', job(2, 2), 1],
  ])('%s', (_, one, most) => {
    expect(mostInBatch(one, 100, 0)).toBe(most);
  });

  test('a last attempt after a death is with more, the more of them have ended well', () => {
    expect(mostInBatch(job(2, 2), 1_000, 16)).toBe(1);
    expect(mostInBatch(job(2, 2), 1_000, 64)).toBe(4);
    expect(mostInBatch(job(2, 2), 1_000, 1_000_000)).toBe(125);
  });
});

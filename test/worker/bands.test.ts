import { describe, expect, test } from 'vitest';
import type { ClaimedJob } from '../../src/queries/claim-jobs.ts';
import { Bands } from '../../src/worker/bands.ts';

function job(id: number, priority: number, runAtMs: number): ClaimedJob {
  const at = new Date(runAtMs);
  return {
    id,
    priority,
    runAt: at,
    queue: 'default',
    kind: 'work',
    payload: null,
    payloadBytes: 4,
    attempt: 1,
    maxAttempts: 1,
    fence: 1,
    uniqueKey: null,
    errors: [],
    metadata: {},
    createdAt: at,
    claimedAt: at,
  };
}

const floors = (bands: Bands, sweep = false) => bands.of(sweep).map(({ floorMs }) => floorMs);

describe('Bands', () => {
  test('one per priority, from the very start at first', () => {
    const bands = new Bands();
    expect(bands.of(false).map(({ priority }) => priority)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(new Set(floors(bands))).toEqual(new Set([Number.NEGATIVE_INFINITY]));
    expect(bands.sweepIsDue(0)).toBe(true);
  });

  test('the floor of a priority is the run_at of its first row in the last claim', () => {
    const bands = new Bands();
    bands.note([job(1, 2, 1_000), job(2, 2, 2_000), job(3, 7, 500)], false, 0, 1);
    expect(floors(bands)[2]).toBe(1_000);
    expect(floors(bands)[7]).toBe(500);
    expect(floors(bands)[5]).toBe(Number.NEGATIVE_INFINITY);
    expect(new Set(floors(bands, true))).toEqual(new Set([Number.NEGATIVE_INFINITY]));
  });

  test('a late row that a sweep finds pulls its floor back', () => {
    const bands = new Bands();
    bands.note([job(9, 5, 9_000)], false, 0, 1);
    bands.note([job(1, 5, 1_000)], true, 0, 1);
    expect(floors(bands)[5]).toBe(1_000);
  });

  test('sweeps take a twentieth of the time, and come at least every five seconds', () => {
    const bands = new Bands();
    bands.note([], true, 100, 110);
    expect(bands.sweepIsDue(110 + 199)).toBe(false);
    expect(bands.sweepIsDue(110 + 200)).toBe(true);
    bands.note([], true, 1_000, 3_000);
    expect(bands.sweepIsDue(7_999)).toBe(false);
    expect(bands.sweepIsDue(8_000)).toBe(true);
  });
});

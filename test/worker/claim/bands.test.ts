import { describe, expect, test } from 'vitest';
import type { ClaimedJob } from '../../../src/queries/claim-jobs.ts';
import { Bands } from '../../../src/worker/claim/bands.ts';

const CLAIMED_AT = 60_000;

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
    begun: true,
    fence: 1,
    uniqueKey: null,
    errors: [],
    metadata: {},
    createdAt: at,
    claimedAt: new Date(CLAIMED_AT),
    cancelReason: null,
  };
}

/** A claim that found as many as it asked for. */
const full = (...jobs: ClaimedJob[]) => ({ jobs, short: false, sweep: false, startMs: 0, endMs: 1 });
const floors = (bands: Bands, sweep = false) => bands.of(sweep).map(({ floorMs }) => floorMs);

describe('Bands', () => {
  test('one per priority, from the very start at first', () => {
    const bands = new Bands();
    expect(bands.of(false).map(({ priority }) => priority)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(new Set(floors(bands))).toEqual(new Set([Number.NEGATIVE_INFINITY]));
    expect(bands.sweepIsDue(0)).toBe(true);
  });

  test('the floor of a priority with more jobs than a claim could take is the run_at of the first that it took', () => {
    const bands = new Bands();
    bands.note(full(job(1, 2, 1_000), job(2, 2, 2_000)));
    expect(floors(bands)[2]).toBe(1_000);
    expect(floors(bands)[3]).toBe(Number.NEGATIVE_INFINITY);
    expect(new Set(floors(bands, true))).toEqual(new Set([Number.NEGATIVE_INFINITY]));
  });

  test('the floor of a priority of which a claim has seen the end is the time of the claim, less a second', () => {
    const bands = new Bands();
    bands.note(full(job(1, 2, 1_000), job(2, 7, 500)));
    const seen = CLAIMED_AT - 1_000;
    expect(floors(bands)).toEqual([
      ...new Array(7).fill(seen),
      500,
      Number.NEGATIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
    ]);
    bands.note({ ...full(job(3, 7, 600)), short: true });
    expect(floors(bands)).toEqual(new Array(10).fill(seen));
    expect(bands.lowestFloorMs).toBe(seen);
  });

  test('a look that found nothing has seen the end of all', () => {
    const bands = new Bands();
    bands.noteNothing(50_000.7, false, 0, 1);
    expect(floors(bands)).toEqual(new Array(10).fill(49_000));
    expect(bands.sweepIsDue(0)).toBe(true);
    bands.noteNothing(50_000, true, 100, 110);
    expect(bands.sweepIsDue(309)).toBe(false);
  });

  test('a claim that found nothing tells no time, and raises nothing', () => {
    const bands = new Bands();
    bands.note({ ...full(), short: true });
    expect(bands.lowestFloorMs).toBe(Number.NEGATIVE_INFINITY);
  });

  test('a late row that a sweep finds pulls its floor back', () => {
    const bands = new Bands();
    bands.note(full(job(9, 5, 9_000)));
    bands.note({ ...full(job(1, 5, 1_000)), sweep: true });
    expect(floors(bands)[5]).toBe(1_000);
  });

  test('sweeps take a twentieth of the time, and come at least every five seconds', () => {
    const bands = new Bands();
    bands.note({ ...full(), sweep: true, startMs: 100, endMs: 110 });
    expect(bands.sweepIsDue(110 + 199)).toBe(false);
    expect(bands.sweepIsDue(110 + 200)).toBe(true);
    bands.note({ ...full(), sweep: true, startMs: 1_000, endMs: 3_000 });
    expect(bands.sweepIsDue(7_999)).toBe(false);
    expect(bands.sweepIsDue(8_000)).toBe(true);
  });

  test('cheap sweeps take a quarter of the time while a late job is expected', () => {
    const bands = new Bands();
    bands.note({ ...full(), sweep: true, startMs: 100, endMs: 110 });
    expect(bands.sweepIsDue(149, true)).toBe(false);
    expect(bands.sweepIsDue(150, true)).toBe(true);
    bands.note({ ...full(), sweep: true, startMs: 1_000, endMs: 1_026 });
    expect(bands.sweepIsDue(1_026 + 519, true)).toBe(false);
    expect(bands.sweepIsDue(1_026 + 520, true)).toBe(true);
  });

  test('a sweep can be asked for', () => {
    const bands = new Bands();
    bands.note({ ...full(), sweep: true, startMs: 1_000, endMs: 3_000 });
    bands.sweepNext();
    expect(bands.sweepIsDue(3_001)).toBe(true);
  });
});

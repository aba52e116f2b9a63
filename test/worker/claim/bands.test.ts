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
const full = (...jobs: ClaimedJob[]) => ({ jobs, short: false, startMs: 0, endMs: 1 });
const floors = (bands: Bands) => bands.all.map(({ floorMs }) => floorMs);
const ends = (bands: Bands) => bands.passed.map(({ endMs }) => endMs);

describe('Bands', () => {
  test('one per priority, from the very start at first, where nothing was passed', () => {
    const bands = new Bands();
    expect(bands.all.map(({ priority }) => priority)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(new Set([...floors(bands), ...ends(bands)])).toEqual(new Set([Number.NEGATIVE_INFINITY]));
  });

  test('the floor of a priority with more jobs than a claim could take is the run_at of the first that it took', () => {
    const bands = new Bands();
    bands.note(full(job(1, 2, 1_000), job(2, 2, 2_000)));
    expect(bands.passed[2]).toEqual({ floorMs: 1_000, endMs: 2_001 });
    expect(floors(bands)[3]).toBe(Number.NEGATIVE_INFINITY);
    expect(bands.busyPriority).toBe(2);
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
    expect(ends(bands).slice(6, 8)).toEqual([CLAIMED_AT, 501]);
    bands.note({ ...full(job(3, 7, 600)), short: true });
    expect(floors(bands)).toEqual(new Array(10).fill(seen));
    expect(bands.lowestFloorMs).toBe(seen);
    expect(bands.busyPriority).toBe(9);
  });

  test('a look that found nothing has seen the end of all', () => {
    const bands = new Bands();
    bands.noteNothing(50_000.7, 1);
    expect(floors(bands)).toEqual(new Array(10).fill(49_000));
    expect(ends(bands)).toEqual(new Array(10).fill(50_000));
  });

  test('a claim that found nothing raises nothing while the time of the database is not known', () => {
    const bands = new Bands();
    bands.note({ ...full(), short: true });
    expect(bands.lowestFloorMs).toBe(Number.NEGATIVE_INFINITY);
  });

  test('a claim that found nothing raises the floors by when it began, once the time of the database is known', () => {
    const bands = new Bands();
    // The answer came at 400 of our clock.
    bands.noteNothing(50_000, 400);
    bands.note({ ...full(), short: true, startMs: 5_000, endMs: 5_700 });
    expect(bands.lowestFloorMs).toBe(50_000 + 4_600 - 1_000);
  });
});

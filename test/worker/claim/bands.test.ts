import { describe, expect, test } from 'vitest';
import type { Band, ClaimedJob } from '../../../src/core/queries/claim/claim-jobs.ts';
import { Bands } from '../../../src/core/worker/claim/bands.ts';

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

/** What a claim with these bands has told. */
const told = (bands: Bands, short: boolean, ...jobs: ClaimedJob[]) =>
  bands.note({ bands: bands.next(5, 0), jobs, short, startMs: 0, endMs: 1 });
const floors = (bands: Bands) => bands.passed.map(({ floorMs }) => floorMs);
const ends = (bands: Bands) => bands.passed.map(({ endMs }) => endMs);

describe('Bands', () => {
  test('one per priority, from the very start at first, where nothing was passed', () => {
    const bands = new Bands();
    expect(bands.next(5, 0).map(({ priority }) => priority)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(new Set([...floors(bands), ...ends(bands)])).toEqual(new Set([Number.NEGATIVE_INFINITY]));
  });

  test('the floor of a priority with more jobs than a claim could take is the run_at of the first that it took', () => {
    const bands = new Bands();
    told(bands, false, job(1, 2, 1_000), job(2, 2, 2_000));
    expect(bands.passed[2]).toEqual({ floorMs: 1_000, endMs: 2_001 });
    expect(floors(bands)[3]).toBe(Number.NEGATIVE_INFINITY);
    expect(bands.busyPriority).toBe(2);
  });

  test('the floor of a priority of which a claim has seen the end is the time of the claim, less a second', () => {
    const bands = new Bands();
    told(bands, false, job(1, 2, 1_000), job(2, 7, 500));
    const seen = CLAIMED_AT - 1_000;
    expect(floors(bands)).toEqual([
      ...new Array(7).fill(seen),
      500,
      Number.NEGATIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
    ]);
    expect(ends(bands).slice(6, 8)).toEqual([CLAIMED_AT, 501]);
    told(bands, true, job(3, 7, 600));
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
    told(bands, true);
    expect(bands.lowestFloorMs).toBe(Number.NEGATIVE_INFINITY);
  });

  test('a claim that found nothing raises the floors by when it began, once the time of the database is known', () => {
    const bands = new Bands();
    // The answer came at 400 of our clock.
    bands.noteNothing(50_000, 400);
    bands.note({ bands: bands.next(5, 5_000), jobs: [], short: true, startMs: 5_000, endMs: 5_700 });
    expect(bands.lowestFloorMs).toBe(50_000 + 4_600 - 1_000);
  });
});

describe('Bands of a queue with aging', () => {
  const AFTER = 10_000;
  /** The database's clock when a claim is sent that is answered at once. */
  const at = (databaseMs: number) => databaseMs - CLAIMED_AT + 1;

  /** All floors known, at the time of a first claim. */
  function begun(...jobs: ClaimedJob[]): Bands {
    const bands = new Bands(AFTER);
    told(bands, jobs.length > 0, ...jobs);
    return bands;
  }

  test('are those of one without, until the time of the database is known', () => {
    expect(new Bands(AFTER).next(5, 0)).toEqual(new Bands().next(5, 0));
  });

  test('begin with what no claim has looked at, so that a first look at each priority comes soon', () => {
    const bands = new Bands(AFTER);
    told(bands, false, job(1, 0, 1_000));
    const next = bands.next(5, at(CLAIMED_AT + 1_000));
    const unknown = { floorMs: Number.NEGATIVE_INFINITY, ceilingMs: CLAIMED_AT + 1_000 - 9 * AFTER };
    expect(next.slice(0, 9)).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8, 9].map((priority) => ({ priority, ...unknown })),
    );
    expect(bands.priorityOf({ priority: 9, runAtMs: CLAIMED_AT - AFTER + 1_000 }, at(CLAIMED_AT))).toBe(9);
    expect(bands.priorityOf({ priority: 9, runAtMs: CLAIMED_AT - AFTER }, at(CLAIMED_AT))).toBe(8);
  });

  test('are those of one without where nothing has aged, and a short claim has seen all of them', () => {
    const bands = begun(job(1, 5, CLAIMED_AT - 50));
    expect(bands.next(5, at(CLAIMED_AT))).toEqual(
      floors(bands).map((floorMs, priority) => ({ priority, floorMs })),
    );
    expect(floors(bands)).toEqual(new Array(10).fill(CLAIMED_AT - 1_000));
  });

  test('the floor of a priority is where the first part begins whose end no claim has seen', () => {
    const bands = begun(job(1, 5, CLAIMED_AT - 50));
    const nowMs = CLAIMED_AT + 2 * AFTER;
    const next = bands.next(5, at(nowMs));
    const claimed = { ...job(2, 2, nowMs - AFTER - 500), claimedAt: new Date(nowMs) };
    // The parts of priorities 0 and 1 that count as 0 come before it; of its own, it is in that which counts as 1.
    bands.note({ bands: next, jobs: [claimed], short: false, startMs: at(nowMs), endMs: at(nowMs) });
    expect(bands.busyPriority).toBe(1);
    expect(bands.backlog).toBe(true);
    expect(floors(bands)).toEqual([
      nowMs - 1_000,
      nowMs - AFTER,
      nowMs - AFTER - 500,
      // Those behind it had parts that count as less than 1, all seen, or none.
      nowMs - 2 * AFTER,
      ...new Array(6).fill(CLAIMED_AT - 1_000),
    ]);
    expect(ends(bands)[2]).toBe(nowMs - AFTER - 499);
  });

  test('claims have come as far as they have, even when the next one stops a little before', () => {
    const bands = begun(job(1, 5, CLAIMED_AT - 50));
    told(bands, false, job(2, 5, CLAIMED_AT - 900));
    expect(bands.passed[5]).toEqual({ floorMs: CLAIMED_AT - 900, endMs: CLAIMED_AT });
  });

  // Times long ago: each priority has had a job from then, at which a full claim stopped.
  test.each([0, 1, 24, 24 * 365 * 50])(
    'where each priority had one %i hours ago, an old job is soon claimed beside too many younger ones of priority 0',
    (hours) => {
      const bands = new Bands(AFTER);
      const hourMs = 3_600_000;
      let nowMs = hours * hourMs + 40 * AFTER;
      let next = 1;
      const jobs: ClaimedJob[] = [];
      const add = (priority: number, runAtMs: number) => jobs.push(job(next++, priority, runAtMs));
      for (let priority = 0; priority <= 9; priority++) for (let n = 0; n < 7; n++) add(priority, n);
      for (const priority of [9, 5, 1]) add(priority, nowMs - 20 * AFTER);
      const old = new Set(jobs.slice(-3).map(({ id }) => id));
      let claims = 0;
      while (jobs.some(({ id }) => old.has(id))) {
        expect(claims++).toBeLessThan(100);
        while (jobs.filter(({ priority }) => priority === 0).length < 20) add(0, nowMs - 10 * AFTER);
        const looks = bands.next(5, at(nowMs));
        const claimed = claim(looks, jobs, 5, nowMs);
        bands.note({
          bands: looks,
          jobs: claimed,
          short: claimed.length < 5,
          startMs: at(nowMs),
          endMs: at(nowMs),
        });
        nowMs += 50;
      }
    },
  );

  /** As the statement does: takes them out. */
  function claim(looks: readonly Band[], jobs: ClaimedJob[], limit: number, nowMs: number): ClaimedJob[] {
    const claimed = looks
      .flatMap(({ priority, floorMs, ceilingMs = Number.POSITIVE_INFINITY }) =>
        jobs
          .filter((job) => job.priority === priority)
          .filter(({ runAt }) => runAt.getTime() >= floorMs && runAt.getTime() < Math.min(ceilingMs, nowMs))
          .sort((a, b) => a.runAt.getTime() - b.runAt.getTime() || a.id - b.id),
      )
      .slice(0, limit);
    for (const each of claimed) jobs.splice(jobs.indexOf(each), 1);
    return claimed.map((each) => ({ ...each, claimedAt: new Date(nowMs) }));
  }
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { agedPriority } from '../../../src/core/job/aging.ts';
import type { Band } from '../../../src/core/queries/claim/claim-jobs.ts';
import { agedBands } from '../../../src/core/worker/claim/aged-bands.ts';

const NOW = Date.parse('2024-02-29T12:00:00Z');
const AFTER = 60_000;
const JUST_NOW = new Array<number>(10).fill(NOW - 1_000);

/** The bands, with times as ages in minutes. */
const shown = (bands: readonly Band[]) =>
  bands.map(({ priority, floorMs, ceilingMs }) => [
    priority,
    (NOW - floorMs) / AFTER,
    ceilingMs === undefined ? null : (NOW - ceilingMs) / AFTER,
  ]);

const floorsMs = fc.array(
  fc.oneof(
    fc.integer({ min: -1_000, max: 20 * AFTER }).map((ageMs) => NOW - ageMs),
    fc.integer({ min: 0, max: 2_000 * 365 * 24 * 3_600_000 }).map((ageMs) => NOW - ageMs),
    fc.constant(Number.NEGATIVE_INFINITY),
  ),
  { minLength: 10, maxLength: 10 },
);
const jobs = fc.array(
  fc.record({
    priority: fc.integer({ min: 0, max: 9 }),
    runAtMs: fc.integer({ min: -1_000, max: 30 * AFTER }).map((ageMs) => NOW - ageMs),
  }),
  { minLength: 2, maxLength: 30 },
);

/** The bands that a job is in. */
function placesOf(bands: readonly Band[], job: { priority: number; runAtMs: number }): number[] {
  return [...bands.entries()]
    .filter(
      ([, { priority, floorMs, ceilingMs = Number.POSITIVE_INFINITY }]) =>
        priority === job.priority && job.runAtMs >= floorMs && job.runAtMs < ceilingMs,
    )
    .map(([place]) => place);
}

describe('agedBands', () => {
  test('are those of a queue without aging where nothing is old', () => {
    expect(shown(agedBands(JUST_NOW, { afterMs: AFTER, nowMs: NOW, limit: 50 }))).toEqual(
      JUST_NOW.map((_, priority) => [priority, 1 / 60, null]),
    );
  });

  test('look at a priority at the place of each better one, the oldest jobs first', () => {
    const floors = [...JUST_NOW];
    floors[2] = NOW - 10 * AFTER;
    floors[3] = NOW - 2.5 * AFTER;
    expect(shown(agedBands(floors, { afterMs: AFTER, nowMs: NOW, limit: 50 })).slice(0, 14)).toEqual([
      // As 0: in slices of a minute.
      ...[9, 8, 7, 6, 5, 4, 3, 2].map((minutes) => [2, minutes + 1, minutes]),
      [0, 1 / 60, null],
      // As 1.
      [3, 2.5, 2],
      [2, 2, 1],
      [1, 1 / 60, null],
      // As 2.
      [3, 2, 1],
      [2, 1, null],
    ]);
  });

  test('of a floor from long ago are few', () => {
    const floors = [...JUST_NOW];
    floors[3] = Date.parse('0001-01-01T00:00:00Z');
    expect(agedBands(floors, { afterMs: AFTER, nowMs: NOW, limit: 50 }).length).toBeLessThan(85);
    const all = new Array<number>(10).fill(Date.parse('0001-01-01T00:00:00Z'));
    expect(agedBands(all, { afterMs: 100, nowMs: NOW, limit: 50 }).length).toBeLessThan(300);
  });

  test('have each job that is not before its floor, once', () => {
    fc.assert(
      fc.property(floorsMs, jobs, fc.integer({ min: 100, max: 100_000_000 }), (floors, jobs, afterMs) => {
        const bands = agedBands(floors, { afterMs, nowMs: NOW, limit: 50 });
        for (const { floorMs, ceilingMs = Number.POSITIVE_INFINITY } of bands) {
          expect(floorMs).toBeLessThan(ceilingMs);
        }
        for (const job of jobs) {
          const passed = job.runAtMs < (floors[job.priority] ?? 0);
          expect(placesOf(bands, job)).toHaveLength(passed ? 0 : 1);
        }
      }),
    );
  });

  test('order jobs by the priority that they count as, then by age', () => {
    fc.assert(
      fc.property(jobs, jobs, (backlog, jobs) => {
        // As claims leave them: at the oldest job of each priority.
        const all = [...backlog, ...jobs];
        const floors = JUST_NOW.map((floorMs, priority) =>
          Math.min(floorMs, ...all.filter((job) => job.priority === priority).map(({ runAtMs }) => runAtMs)),
        );
        const bands = agedBands(floors, { afterMs: AFTER, nowMs: NOW, limit: 50 });
        const places = all.map((job) => ({
          ...job,
          place: placesOf(bands, job)[0] ?? -1,
          // A job that became due at the very moment has not been due for that long.
          aged: agedPriority(job.priority, NOW - 1 - job.runAtMs, AFTER),
        }));
        for (const a of places) {
          for (const b of places) {
            // So far the bands are split.
            if (b.place >= 80) continue;
            if (a.aged < b.aged) expect(a.place).toBeLessThan(b.place);
            if (a.aged !== b.aged) continue;
            // At the head, or wherever not all have aged; what is far from both is only ordered later, and what is
            // not yet due is not claimed.
            const atHead = a.runAtMs === Math.min(...floors) || b.runAtMs >= NOW - 9 * AFTER;
            const apart = atHead && b.runAtMs <= NOW;
            if (a.aged === 0 && b.runAtMs - a.runAtMs >= AFTER && apart)
              expect(a.place).toBeLessThan(b.place);
            if (a.aged > 0 && a.priority !== b.priority && a.runAtMs < b.runAtMs)
              expect(a.place).toBeLessThan(b.place);
          }
        }
      }),
    );
  });

  test('are split where the database is said to be, and end nowhere', () => {
    const bands = agedBands(new Array(10).fill(NOW - 20 * AFTER), {
      afterMs: AFTER,
      nowMs: NOW + 0.4,
      limit: 50,
    });
    for (const priority of JUST_NOW.keys()) {
      const ofPriority = bands.filter((band) => band.priority === priority);
      expect(ofPriority.at(-1)?.ceilingMs).toBeUndefined();
      expect(ofPriority.slice(0, -1).every(({ ceilingMs }) => Number.isInteger(ceilingMs))).toBe(true);
    }
  });
});

import { describe, expect, test } from 'vitest';
import { OverlookedJobs } from '../../../src/core/worker/claim/overlooked-jobs.ts';
import { Sweep } from '../../../src/core/worker/claim/sweep.ts';

const place = (id: number, priority = 5, runAtMs = id) => ({ id, priority, runAtMs });
const slice = (
  startMs: number,
  endMs: number,
  after = undefined as ReturnType<typeof place> | undefined,
  found = 0,
) => ({
  ...{ startMs, endMs, after, found },
});
const IDLE_MS = 2_000;

describe('a sweep', () => {
  test.each([
    // quiet for, took, backlog, pause
    ['jobs come', 0, 1, false, 10],
    ['jobs come, at a quarter of the time', 0, 20, false, 80],
    ['jobs come, on a busy machine', 0, 60, false, 240],
    ['jobs come, beside many dead rows', 0, 150, false, 2_000],
    ['jobs come, slowly', 0, 1_000, false, 5_000],
    ['more jobs are due than can be claimed', 0, 1, true, 100],
    ['more jobs are due than can be claimed, slowly', 0, 20, true, 400],
    ['the last job was a second ago', 1_000, 1, false, 100],
    ['it has been quiet for long', 1_000_000, 1, false, IDLE_MS],
  ])('begins a pass when %s', (_, quietMs, tookMs, backlog, pauseMs) => {
    const sweep = new Sweep();
    sweep.note(slice(10_000 - tookMs, 10_000));
    expect(sweep.dueMs(quietMs, IDLE_MS, backlog)).toBe(10_000 + pauseMs);
  });

  test('goes on where a slice stopped, in a twentieth of the time', () => {
    const sweep = new Sweep();
    sweep.note(slice(96, 100, place(7)));
    expect(sweep.after).toEqual(place(7));
    expect(sweep.ended).toBe(false);
    expect(sweep.dueMs(0, IDLE_MS, false)).toBe(100 + 4 * 20);
    sweep.note(slice(180, 182));
    expect(sweep.ended).toBe(true);
  });

  test.each([
    ['no job has come for long', 1_000_000, 4, 1_000],
    ['the last job was a second ago', 1_000, 4, 100],
    ['it is slow', 1_000_000, 60, 1_200],
    ['it is very slow', 1_000_000, 1_000, 5_000],
  ])('goes on where a slice stopped when %s', (_, quietMs, tookMs, pauseMs) => {
    const sweep = new Sweep();
    sweep.note(slice(10_000 - tookMs, 10_000, place(7)));
    expect(sweep.dueMs(quietMs, IDLE_MS, false)).toBe(10_000 + pauseMs);
  });

  test('goes on soon where it finds jobs', () => {
    const sweep = new Sweep();
    sweep.note(slice(96, 100, place(7), 3));
    expect(sweep.dueMs(0, IDLE_MS, false)).toBe(110);
  });

  test('comes the less often, the more workers sweep, but for urgent ones', () => {
    const sweep = new Sweep();
    sweep.note(slice(99, 100));
    sweep.note(slice(100, 101));
    expect([1, 10, 50, 500].map((crew) => sweep.dueMs(0, IDLE_MS, false, crew) - 101)).toEqual([
      10, 100, 500, 500,
    ]);
    expect([1, 10, 50, 500].map((crew) => sweep.dueMs(0, IDLE_MS, true, crew) - 101)).toEqual([
      100, 1_000, 5_000, 5_000,
    ]);
    expect(sweep.dueMs(0, 200, false, 500) - 101).toBe(200);
    sweep.urge();
    expect(sweep.dueMs(0, IDLE_MS, false, 500)).toBe(101);
  });

  test('is not put off by one slice that had to wait', () => {
    const sweep = new Sweep();
    sweep.note(slice(98, 100));
    sweep.note(slice(110, 510));
    expect(sweep.dueMs(0, IDLE_MS, false)).toBe(520);
    sweep.note(slice(520, 920));
    expect(sweep.dueMs(0, IDLE_MS, false)).toBe(920 + 5_000);
  });

  test('begins anew, without pauses, with the newest jobs, when it is urgent', () => {
    const sweep = new Sweep();
    sweep.note(slice(0, 400, place(7)));
    expect(sweep.spanMs).toBeUndefined();
    sweep.urge('newest first');
    expect(sweep.after).toBeUndefined();
    for (const spanMs of [60_000, 3_600_000, undefined]) {
      expect(sweep.spanMs).toBe(spanMs);
      sweep.begin();
      sweep.note(slice(400, 800, place(3)));
      expect(sweep.dueMs(0, IDLE_MS, false)).toBe(800);
      expect(sweep.urgent).toBe(true);
      sweep.note(slice(800, 1_200));
    }
    expect(sweep.urgent).toBe(false);
    expect(sweep.ended).toBe(true);
  });

  test('begins anew when it is asked for in the middle, also of a slice', () => {
    const sweep = new Sweep();
    sweep.begin();
    sweep.urge('newest first');
    sweep.note(slice(0, 4, place(3)));
    expect(sweep.after).toBeUndefined();
    sweep.begin();
    sweep.note(slice(4, 8));
    expect(sweep.spanMs).toBe(3_600_000);
    sweep.begin();
    sweep.urge('newest first');
    sweep.note(slice(8, 12));
    expect(sweep.spanMs).toBe(60_000);
    sweep.urge();
    sweep.begin();
    sweep.note(slice(12, 16));
    expect(sweep.ended).toBe(true);
  });
});

describe('overlooked jobs', () => {
  test('are taken in claim order, each once', () => {
    const overlooked = new OverlookedJobs();
    overlooked.add([place(3), place(1, 9), place(2, 5, 3)]);
    overlooked.add([place(3), place(4, 0)]);
    expect(overlooked.size).toBe(4);
    expect(overlooked.take(3, 9).map(({ id }) => id)).toEqual([4, 2, 3]);
    expect(overlooked.take(3, 9).map(({ id }) => id)).toEqual([1]);
    expect(overlooked.take(3, 9)).toEqual([]);
  });

  test('that are less urgent than what claims have not finished wait', () => {
    const overlooked = new OverlookedJobs();
    overlooked.add([place(1, 6), place(2, 3)]);
    expect(overlooked.take(10, 5).map(({ id }) => id)).toEqual([2]);
    expect(overlooked.take(10, 5)).toEqual([]);
    expect(overlooked.size).toBe(1);
  });

  test('of a queue with aging are taken as the priority that they count as, the oldest first', () => {
    let aged = 1;
    const overlooked = new OverlookedJobs(({ priority }) => Math.max(0, priority - aged));
    overlooked.add([place(1, 3, 10), place(2, 2, 30), place(3, 1, 20), place(4, 0, 25), place(5, 3, 15)]);
    // One has aged as much as another that is older or younger.
    expect(overlooked.take(2, 0).map(({ id }) => id)).toEqual([3, 4]);
    expect(overlooked.take(2, 0)).toEqual([]);
    aged = 3;
    expect(overlooked.take(3, 0).map(({ id }) => id)).toEqual([1, 5, 2]);
  });

  test('are kept up to a bound', () => {
    const overlooked = new OverlookedJobs();
    expect(overlooked.add(Array.from({ length: 25_000 }, (_, id) => place(id)))).toBe(true);
    expect(overlooked.add([place(25_001)])).toBe(false);
    expect(overlooked.size).toBe(25_000);
  });
});

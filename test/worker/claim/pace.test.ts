import { describe, expect, test } from 'vitest';
import type { Until } from '../../../src/core/worker/base/until.ts';
import { HotPolling } from '../../../src/core/worker/claim/hot-polling.ts';
import { type ClaimResult, type Next, Pace } from '../../../src/core/worker/claim/pace.ts';

const NOW_MS = 10_000;
const newPace = (until: Until) => new Pace(new HotPolling(75), { until, pollIntervalMs: 75 });
const result = (claimed: number, more: Partial<ClaimResult> = {}): ClaimResult => ({
  demand: 10,
  claimed,
  among: false,
  quiet: true,
  nowMs: NOW_MS,
  ...more,
});
const idle = (anew: boolean): Next => ({ rest: 'until woken', anew });
const look = (ms: number): Next => ({ rest: 'ms', ms });

describe('a worker that runs on', () => {
  test.each<[string, ClaimResult, Next]>([
    ['as much as it asked for', result(10), 'claim'],
    ['some', result(3), look(2)],
    ['nothing', result(0), idle(true)],
    ['nothing of what lay behind the floors', result(0, { among: true }), 'claim'],
    ['some of what lay behind the floors', result(3, { among: true }), 'claim'],
  ])('has claimed %s', (_, claim, next) => {
    expect(newPace('stopped').after(claim)).toEqual(next);
  });

  test('looks less and less often after the last job, then rests', () => {
    const pace = newPace('stopped');
    pace.after(result(3));
    expect(pace.after(result(0, { nowMs: NOW_MS + 100 }))).toEqual(look(25));
    expect(pace.after(result(0, { nowMs: NOW_MS + 300 }))).toEqual(idle(true));
  });

  test('looks anew at what was eventful only', () => {
    const pace = newPace('stopped');
    expect(pace.after(result(0))).toEqual(idle(true));
    expect(pace.after(result(0))).toEqual(idle(false));
    pace.noteTold(NOW_MS, false);
    expect(pace.after(result(0))).toEqual(look(2));
    expect(pace.after(result(0, { nowMs: NOW_MS + 300 }))).toEqual(idle(true));
  });
});

describe('a worker that is told of each job', () => {
  test('looks once, whether or not it finds the job', () => {
    const pace = newPace('stopped');
    expect(pace.after(result(0))).toEqual(idle(true));
    pace.noteTold(NOW_MS, true);
    expect(pace.after(result(0, { told: true }))).toEqual(idle(false));
    pace.noteTold(NOW_MS, true);
    expect(pace.after(result(1, { told: true }))).toEqual(idle(true));
    expect(pace.after(result(10, { told: true }))).toEqual('claim');
  });

  test('looks often where it finds nothing, and may not have seen all', () => {
    const pace = newPace('stopped');
    pace.noteTold(NOW_MS, true);
    expect(pace.after(result(0, { told: true, sawEnd: false }))).toEqual(look(2));
  });

  test('looks often after a job of which nobody has told', () => {
    const pace = newPace('stopped');
    pace.noteTold(NOW_MS, true);
    expect(pace.after(result(1))).toEqual(look(2));
  });

  test('looks often where a claim did not get to the end: the jobs were too large', () => {
    const pace = newPace('stopped');
    pace.noteTold(NOW_MS, true);
    expect(pace.after(result(1, { told: true, sawEnd: false }))).toEqual(look(2));
  });
});

describe('a worker that works until its queue is empty', () => {
  test.each<[string, ClaimResult, Next]>([
    ['as much as it asked for', result(10), 'claim'],
    ['some', result(3), look(75)],
    ['nothing', result(0), 'sweep'],
    ['nothing, while others run', result(0, { quiet: false }), look(75)],
    ['what lay behind the floors', result(1, { among: true }), 'claim'],
  ])('has claimed %s', (_, claim, next) => {
    expect(newPace('empty').after(claim)).toEqual(next);
  });

  test('is over when it has found nothing in the whole queue', () => {
    const pace = newPace('empty');
    pace.after(result(0));
    pace.noteSwept();
    // Found by the sweep, and locked by somebody else.
    expect(pace.after(result(0, { among: true }))).toBe('claim');
    expect(pace.after(result(0))).toBe('over');
  });

  test('looks everywhere once more when it has done something since', () => {
    const pace = newPace('empty');
    pace.after(result(0));
    pace.noteSwept();
    pace.after(result(1));
    expect(pace.after(result(0))).toBe('sweep');
  });
});

test('a drain that goes through a queue once more looks again for what it has passed', () => {
  const pace = newPace('empty');
  expect(pace.after(result(0))).toBe('sweep');
  pace.noteSwept();
  expect(pace.after(result(0))).toBe('over');
  pace.begin();
  expect(pace.after(result(0))).toBe('sweep');
});

test('a drain looks again where jobs became due during its pass', () => {
  const pace = newPace('empty');
  expect(pace.after(result(0))).toBe('sweep');
  pace.begin();
  pace.noteSwept();
  expect(pace.after(result(0))).toBe('sweep');
});

import { expect, test } from 'vitest';
import { LostAnswers } from '../../../src/worker/claim/lost-answers.ts';

const SECOND = 1_000;

test('nothing is given back unless an answer was lost', async () => {
  const answers = new LostAnswers();
  expect(await answers.answerTo(Promise.resolve({ failure: undefined }))).toEqual({ failure: undefined });
  expect([answers.suspected, answers.owed]).toEqual([false, false]);
  expect(answers.releaseInMs(performance.now())).toBe(Number.POSITIVE_INFINITY);
});

test.each([
  ['an answer', () => Promise.reject(new Error('the connection broke')), /broke/],
  ['a part of one', () => Promise.resolve({ failure: new Error('the connection broke') }), undefined],
])(
  'after %s was lost it is given back at once, then every 5 s, and once after a minute',
  async (...[, claim, error]) => {
    const answers = new LostAnswers();
    const lost = answers.answerTo(claim());
    await (error === undefined ? lost : expect(lost).rejects.toThrow(error));
    // Whole milliseconds, and after it.
    const lostMs = Math.ceil(performance.now()) + 1;
    expect([answers.owed, answers.releaseInMs(lostMs)]).toEqual([true, 0]);
    answers.noteRelease(lostMs);
    expect(answers.owed).toBe(false);
    const at: number[] = [];
    for (let nowMs = lostMs; answers.releaseInMs(nowMs) < Number.POSITIVE_INFINITY; ) {
      expect(answers.suspected).toBe(true);
      nowMs += answers.releaseInMs(nowMs);
      at.push((nowMs - lostMs) / SECOND);
      answers.noteRelease(nowMs);
    }
    // What the server did in the minute is found by the last one.
    expect(at).toEqual([5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60]);
    expect([answers.suspected, answers.owed]).toEqual([false, false]);
  },
);

import { expect, test } from 'vitest';
import { LostAnswers } from '../../../src/core/worker/claim/lost-answers.ts';
import { NoAnswerError } from '../../../src/core/worker/statements/no-answer-error.ts';

const SECOND = 1_000;

test('nothing is given back unless an answer was lost', async () => {
  const answers = new LostAnswers(() => undefined);
  expect(await answers.answerTo(Promise.resolve({ failure: undefined }))).toEqual({ failure: undefined });
  expect([answers.suspected, answers.owed]).toEqual([false, false]);
  expect(answers.releaseInMs(performance.now())).toBe(Number.POSITIVE_INFINITY);
});

test.each([
  ['an answer', () => Promise.reject(new Error('the connection broke')), /broke/],
  ['a part of one', () => Promise.resolve({ failure: new Error('the connection broke') }), undefined],
])(
  'after %s was lost it is given back at once, and again less and less often, for a quarter of an hour',
  async (...[, claim, error]) => {
    const answers = new LostAnswers(() => undefined);
    const lost = answers.answerTo(claim());
    await (error === undefined ? lost : expect(lost).rejects.toThrow(error));
    // Whole milliseconds, and after it.
    const lostMs = Math.ceil(performance.now()) + 1;
    expect([answers.owed, answers.releaseInMs(lostMs)]).toEqual([true, 0]);
    answers.noteRelease(lostMs, lostMs);
    expect(answers.owed).toBe(false);
    const at: number[] = [];
    for (let nowMs = lostMs; answers.releaseInMs(nowMs) < Number.POSITIVE_INFINITY; ) {
      expect(answers.suspected).toBe(true);
      nowMs += answers.releaseInMs(nowMs);
      at.push((nowMs - lostMs) / SECOND);
      answers.noteRelease(nowMs, nowMs);
    }
    expect(at.slice(0, 4)).toEqual([5, 12.5, 23.75, 40.625]);
    // The last one finds what the server did as late as it may have got the statement.
    expect([at.length, at.filter((seconds) => seconds > 16 * 60).length]).toEqual([12, 1]);
    expect([answers.suspected, answers.owed]).toEqual([false, false]);
  },
);

test('after a look that took long, claims go on for as long as after a short one', async () => {
  const answers = new LostAnswers(() => undefined);
  await expect(answers.answerTo(Promise.reject(new Error('the connection broke')))).rejects.toThrow();
  const beganMs = Math.ceil(performance.now()) + 1;
  const endedMs = beganMs + 60 * SECOND;
  answers.noteRelease(beganMs, endedMs);
  expect(answers.releaseInMs(endedMs)).toBe(5 * SECOND);
});

test('an answer that was given up and comes late, however late, is looked for at once', async () => {
  let comes: () => void = () => undefined;
  const late = new Promise<void>((resolve) => {
    comes = resolve;
  });
  let told = 0;
  const answers = new LostAnswers(() => told++);
  const claim = Promise.reject(new NoAnswerError('claims', 5_000, late));
  await expect(answers.answerTo(claim)).rejects.toThrow('has not answered');
  const hourLaterMs = performance.now() + 3_600 * SECOND;
  answers.noteRelease(hourLaterMs, hourLaterMs);
  // The server may still get the statement.
  expect([answers.suspected, answers.owed, told]).toEqual([true, false, 0]);
  comes();
  await late;
  await Promise.resolve();
  expect([answers.owed, told, answers.releaseInMs(hourLaterMs)]).toEqual([true, 1, 0]);
  answers.noteRelease(hourLaterMs, hourLaterMs);
  expect([answers.suspected, answers.owed]).toEqual([false, false]);
});

test('what is suspected while jobs are given back is looked for at once after that', () => {
  const answers = new LostAnswers(() => undefined);
  answers.suspect();
  const beganMs = performance.now();
  answers.suspect();
  answers.noteRelease(beganMs, beganMs);
  expect([answers.suspected, answers.owed, answers.releaseInMs(performance.now())]).toEqual([true, true, 0]);
  answers.noteRelease(performance.now() + 1, performance.now() + 1);
  expect([answers.suspected, answers.owed]).toEqual([false, false]);
});

import { describe, expect, test } from 'vitest';
import { NearRefusal } from '../../../src/core/worker/claim/near-refusal.ts';

/** Claims from a line of so many jobs of which some are refused; returns what each claim has asked for. */
function claimAll(count: number, bad: readonly number[], most = 1_000) {
  const near = new NearRefusal();
  const line = Array.from({ length: count }, (_, at) => at);
  const asked: number[] = [];
  let searches = 0;
  while (line.some((at) => !bad.includes(at))) {
    const limit = near.of(most);
    asked.push(limit);
    const next = line.slice(0, limit);
    const refused = next.filter((at) => bad.includes(at));
    if (refused.length === 0) near.noteAccepted(limit, line.splice(0, limit).length);
    else if (!near.noteRefused(limit)) {
      searches++;
      for (const at of refused) line.splice(line.indexOf(at), 1);
      near.noteSearched(true);
    }
    if (asked.length > 10_000) throw new Error('it does not end');
  }
  return { asked, searches };
}

describe('claims near a row that refuses', () => {
  test('ask for all where nothing refuses', () => {
    expect(claimAll(5_000, []).asked).toEqual([1_000, 1_000, 1_000, 1_000, 1_000]);
  });

  test.each([0, 1, 500, 700, 998, 999])('come to it in a dozen, one in a thousand, at %i', (bad) => {
    const { asked, searches } = claimAll(1_000, [bad]);
    expect(searches).toBe(1);
    expect(asked.length).toBeLessThanOrEqual(20);
  });

  test('ask for all again once it is past', () => {
    const { asked } = claimAll(40_000, [700]);
    expect(asked.slice(-30)).toEqual(asked.slice(-30).fill(1_000));
    expect(asked.length).toBeLessThan(60);
  });

  test('pass many of them', () => {
    const bad = Array.from({ length: 1_000 }, (_, at) => at).filter((at) => at % 3 === 0);
    expect(claimAll(2_000, bad).searches).toBeLessThanOrEqual(bad.length);
  });

  test('go on after one for which there was no use, once it was sent', () => {
    const near = new NearRefusal();
    near.noteSearched(true);
    near.noteAccepted(0, 0);
    expect(near.of(1_000)).toBeGreaterThan(0);
  });

  test('ask for all again where none was found', () => {
    const near = new NearRefusal();
    expect(near.noteRefused(1_000)).toBe(true);
    expect(near.of(1_000)).toBe(500);
    near.noteSearched(false);
    expect(near.of(1_000)).toBe(1_000);
  });
});

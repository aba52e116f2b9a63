import { describe, expect, test } from 'vitest';
import type { GoneWorker } from '../../../src/core/queries/presence/check-workers.ts';
import { Suspicion } from '../../../src/core/worker/presence/suspicion.ts';

const lost = (id: number, seen = '1.000000', session = id): GoneWorker => ({
  id,
  seen,
  why: 'lost',
  session,
});

/** A worker that checks every 1.5 seconds from second 0 on, and sees at each check who looks gone then. */
function checks(suspicion: Suspicion, seconds: number, gone: (second: number) => GoneWorker[], workers = 4) {
  const condemned: [second: number, id: number][] = [];
  for (let second = 0; second <= seconds; second += 1.5) {
    for (const { id } of suspicion.judge({ workers, gone: gone(second) }, second * 1_000))
      condemned.push([second, id]);
  }
  return condemned;
}

describe('a worker whose session has ended', () => {
  test('is gone when that was seen for as long as it may take to connect anew', () => {
    expect(checks(new Suspicion(3_000), 4.5, (second) => (second >= 1.5 ? [lost(7)] : []))).toEqual([
      [4.5, 7],
    ]);
  });

  test('is forgiven when its session was back in between', () => {
    expect(checks(new Suspicion(3_000), 6, (second) => (second === 1.5 ? [] : [lost(7)]))).toEqual([[6, 7]]);
  });

  test('is forgiven when it has shown itself in between', () => {
    const seen = (second: number) => [lost(7, second < 3 ? '1.000000' : '2.000000')];
    expect(checks(new Suspicion(3_000), 4.5, seen)).toEqual([]);
    expect(checks(new Suspicion(3_000), 6, seen)).toEqual([[6, 7]]);
  });

  test('is looked at when its time is over, and not later', () => {
    const suspicion = new Suspicion(2_500);
    expect(suspicion.inMs(0)).toBe(Number.POSITIVE_INFINITY);
    suspicion.judge({ workers: 2, gone: [lost(7)] }, 1_000);
    suspicion.judge({ workers: 2, gone: [lost(7)] }, 2_500);
    expect(suspicion.inMs(2_500)).toBe(1_000);
    expect(suspicion.judge({ workers: 2, gone: [lost(7)] }, 3_500)).toMatchObject([{ id: 7 }]);
    // It is another’s row by now, or locked: no reason to hurry.
    expect(suspicion.inMs(3_500)).toBe(Number.POSITIVE_INFINITY);
  });
});

test.each(['silent', 'frozen'] as const)('a %s worker is gone at once', (why) => {
  const gone = [{ id: 7, seen: '1.000000', why, session: 70 }];
  expect(new Suspicion(3_000).judge({ workers: 2, gone }, 0)).toEqual([{ ...gone[0], sinceMs: 0 }]);
});

describe('most of several workers at once', () => {
  test('takes four times as long to believe', () => {
    const most = () => [lost(1), lost(2), lost(3)];
    expect(checks(new Suspicion(3_000), 10.5, most)).toEqual([]);
    expect(checks(new Suspicion(3_000), 12, most)).toEqual([
      [12, 1],
      [12, 2],
      [12, 3],
    ]);
  });

  test('is not half of them, nor one of two', () => {
    expect(checks(new Suspicion(3_000), 3, () => [lost(1), lost(2)])).toHaveLength(2);
    expect(checks(new Suspicion(3_000), 3, () => [lost(1)], 2)).toHaveLength(1);
  });

  test('is not several when they share a connection', () => {
    // Three workers of one process; what counts the workers counts them as one, too.
    const neighbours = () => [lost(1, '1.0', 70), lost(2, '1.0', 70), lost(3, '1.0', 70)];
    expect(checks(new Suspicion(3_000), 3, neighbours, 2)).toHaveLength(3);
    const two = () => [...neighbours(), lost(4, '1.0', 71)];
    expect(checks(new Suspicion(3_000), 10.5, two, 3)).toEqual([]);
  });

  test('is no longer so when the others are back', () => {
    const gone = (second: number) => (second < 6 ? [lost(1), lost(2), lost(3)] : [lost(1)]);
    expect(checks(new Suspicion(3_000), 6, gone)).toEqual([[6, 1]]);
  });
});

describe('a server’s clock that is set ahead', () => {
  const silent = { ...lost(7), why: 'silent' } as const;
  /** Who is declared gone by a check at this second of the worker's clock, and of the server's. */
  const checked = (suspicion: Suspicion, second: number, serverSecond: number, server = 'one') => {
    const clock = { serverStartedAt: server, serverMs: serverSecond * 1_000 };
    suspicion.noteClock(clock, second * 1_000, second * 1_000);
    return suspicion.judge({ workers: 4, gone: [silent] }, second * 1_000);
  };

  test('is no silence: for as long as that was, and 30 seconds at most, none is gone', () => {
    const suspicion = new Suspicion(3_000);
    suspicion.noteClock({ serverStartedAt: 'one', serverMs: 1e12 }, 0, 0);
    const times = [1.5, 5, 9, 13, 17, 21, 25, 29];
    for (const second of times) expect(checked(suspicion, second, 1e9 + 600 + second)).toEqual([]);
    expect(suspicion.inMs(29_000)).toBe(2_500);
    expect(checked(suspicion, 31.5, 1e9 + 631.5)).toMatchObject([{ id: 7 }]);
  });

  test('is also that of another server which takes over', () => {
    const suspicion = new Suspicion(3_000);
    suspicion.noteClock({ serverStartedAt: 'one', serverMs: 1e12 }, 0, 0);
    expect(checked(suspicion, 1.5, 1e9 + 60, 'two')).toEqual([]);
  });

  test('is not one that differs from the clock of another server that answers in turn', () => {
    const suspicion = new Suspicion(3_000);
    for (let ms = 0; ms < 60_000; ms += 3_000) {
      suspicion.noteClock({ serverStartedAt: 'one', serverMs: 1e12 + ms }, ms, ms);
      suspicion.noteClock({ serverStartedAt: 'two', serverMs: 1e12 + 60_000 + ms }, ms, ms);
    }
    expect(checked(suspicion, 61, 1e9 + 61)).toMatchObject([{ id: 7 }]);
  });

  test('nor one that runs as time does, or is set back', () => {
    const suspicion = new Suspicion(3_000);
    suspicion.noteClock({ serverStartedAt: 'one', serverMs: 1e12 }, 0, 0);
    expect(checked(suspicion, 4, 1e9 + 4.2)).toMatchObject([{ id: 7 }]);
    expect(checked(suspicion, 8, 1e9 - 600)).toMatchObject([{ id: 7 }]);
  });
});

describe('a worker that was cut off itself', () => {
  test('suspects nobody for as long as it was, however long it has seen them', () => {
    const suspicion = new Suspicion(3_000);
    const look = (second: number) =>
      suspicion.judge({ workers: 4, gone: [lost(1), { ...lost(2), why: 'silent' }] }, second * 1_000);
    look(0);
    expect(look(20)).toEqual([]);
    expect(suspicion.inMs(20_000)).toBe(20_000);
    for (let second = 21.5; second < 40; second += 1.5) expect(look(second)).toEqual([]);
    expect(look(40)).toMatchObject([{ id: 1 }, { id: 2 }]);
  });

  test('suspects nobody for 5 seconds at least, and 30 at most', () => {
    const respiteOf = (cutOffMs: number) => {
      const suspicion = new Suspicion(1_000);
      suspicion.rest(0, cutOffMs);
      suspicion.judge({ workers: 2, gone: [lost(1)] }, 0);
      return suspicion.inMs(0);
    };
    expect([0, 8_000, 3_600_000].map(respiteOf)).toEqual([5_000, 8_000, 30_000]);
  });

  test('begins anew with what it had seen before', () => {
    const suspicion = new Suspicion(10_000);
    suspicion.judge({ workers: 4, gone: [lost(1)] }, 0);
    suspicion.rest(4_000);
    suspicion.judge({ workers: 4, gone: [lost(1)] }, 4_400);
    expect(suspicion.inMs(4_400)).toBe(10_000);
  });
});

import { describe, expect, test } from 'vitest';
import { ANY_QUEUE, WakeUps } from '../../src/core/queue/enqueue/wake-ups.ts';
import { untouched } from './support/executors.ts';

/** Five at once, then one in 4 ms. */
const BURST = 5;
const INTERVAL_MS = 4;

const db = untouched();
const transaction = () => ({ ...untouched(), rollback: () => undefined });

/** Wake-ups on a clock that stands still until a test sets it. */
function wakeUpsAt(clock: { ms: number }) {
  const wakeUps = new WakeUps('channel', () => clock.ms);
  /** The queues that a statement on `db` might notify, of these; it notifies `woken`, or all of those. */
  return async (queues: string[], { on = db, woken }: { on?: typeof db; woken?: string[] } = {}) => {
    let allowed: readonly string[] = [];
    await wakeUps.allow(on, queues, async (wakeUp) => {
      if (wakeUp !== undefined) expect(wakeUp.channel).toBe('channel');
      allowed = wakeUp?.queues ?? [];
      return { woken: woken ?? allowed };
    });
    return allowed;
  };
}

test('a burst notifies, then one in 4 ms; a pause lets the next burst through', async () => {
  const clock = { ms: 1_000_000 };
  const allow = wakeUpsAt(clock);
  const count = async () => {
    let notified = 0;
    for (let n = 0; n < 100; n++) notified += (await allow(['mail'])).length;
    return notified;
  };
  expect(await count()).toBe(BURST);
  clock.ms += INTERVAL_MS - 1;
  expect(await count()).toBe(0);
  clock.ms += 1;
  expect(await count()).toBe(1);
  clock.ms += 2 * INTERVAL_MS;
  expect(await count()).toBe(2);
  clock.ms += 3_600_000;
  expect(await count()).toBe(BURST);
});

test('whoever enqueues once in 4 ms or less often always notifies', async () => {
  const clock = { ms: 0 };
  const allow = wakeUpsAt(clock);
  for (let n = 0; n < 1_000; n++, clock.ms += INTERVAL_MS) expect(await allow(['mail'])).toEqual(['mail']);
});

test('each queue has its own bucket, named once however often it is asked for', async () => {
  const allow = wakeUpsAt({ ms: 0 });
  for (let n = 0; n < BURST; n++) expect(await allow(['a', 'a', 'a'])).toEqual(['a']);
  expect(await allow(['a', 'b'])).toEqual(['b']);
  expect(await allow(['a'])).toEqual([]);
});

test('what notified nobody does not count: a duplicate, a scheduled job, a statement that failed', async () => {
  const clock = { ms: 0 };
  const allow = wakeUpsAt(clock);
  for (let n = 0; n < 100; n++) expect(await allow(['a'], { woken: [] })).toEqual(['a']);
  const wakeUps = new WakeUps('channel', () => clock.ms);
  const failure = new Error('no connection');
  const fail = async () => {
    throw failure;
  };
  for (let n = 0; n < 100; n++) await expect(wakeUps.allow(db, ['a'], fail)).rejects.toBe(failure);
  await wakeUps.allow(db, ['a'], async (wakeUp) => {
    expect(wakeUp?.queues).toEqual(['a']);
    return { woken: [] };
  });
});

test('the last of a burst says that others may follow which do not notify', async () => {
  const clock = { ms: 0 };
  const wakeUps = new WakeUps('channel', () => clock.ms);
  const othersNotify: (boolean | undefined)[] = [];
  const enqueue = async () => {
    await wakeUps.allow(db, ['a'], async (wakeUp) => {
      othersNotify.push(wakeUp?.othersNotify);
      return { woken: wakeUp?.queues ?? [] };
    });
  };
  for (let n = 0; n < 7; n++) await enqueue();
  expect(othersNotify).toEqual([true, true, true, true, false, undefined, undefined]);
  clock.ms += INTERVAL_MS;
  await enqueue();
  expect(othersNotify.at(-1)).toBe(false);
  clock.ms += 2 * INTERVAL_MS;
  await enqueue();
  expect(othersNotify.at(-1)).toBe(true);
});

test('beside others who enqueue more, it notifies less often', async () => {
  const clock = { ms: 0 };
  const wakeUps = new WakeUps('channel', () => clock.ms);
  let notified = 0;
  const enqueue = async (id: number) => {
    await wakeUps.allow(db, ['a'], async (wakeUp) => {
      const woken = wakeUp?.queues ?? [];
      notified += woken.length;
      return { woken, ids: [id] };
    });
  };
  // A fifth of 2,500 jobs a second: twenty notifications a second, once it knows.
  for (let n = 0; n < 500; n++, clock.ms += 2) await enqueue(n * 5);
  expect(notified).toBeGreaterThanOrEqual(20);
  expect(notified).toBeLessThan(20 + 40);
});

test('what is drawn for a statement that may be sent later counts at once', async () => {
  const wakeUps = new WakeUps('channel', () => 0);
  for (let n = 0; n < BURST; n++)
    expect(wakeUps.draw('a')).toMatchObject({ channel: 'channel', queues: ['a'] });
  expect(wakeUps.draw('a')).toBeUndefined();
  expect(wakeUps.draw('b')).toBeDefined();
});

describe('a transaction', () => {
  test('notifies a queue once, and leaves the rest of the burst to others', async () => {
    const allow = wakeUpsAt({ ms: 0 });
    const on = transaction();
    expect(await allow(['a'], { on })).toEqual(['a']);
    for (let n = 0; n < 100; n++) expect(await allow(['a', 'b'], { on })).toEqual(n === 0 ? ['b'] : []);
    for (let n = 1; n < BURST; n++) expect(await allow(['a'], { on: transaction() })).toEqual(['a']);
    expect(await allow(['a'], { on: transaction() })).toEqual([]);
  });

  test('may notify later what it has not yet notified', async () => {
    const allow = wakeUpsAt({ ms: 0 });
    const on = transaction();
    expect(await allow(['a'], { on, woken: [] })).toEqual(['a']);
    expect(await allow(['a'], { on })).toEqual(['a']);
  });

  test('may notify again where the queues are not known beforehand', async () => {
    const allow = wakeUpsAt({ ms: 0 });
    const on = transaction();
    for (let n = 0; n < 2; n++) expect(await allow([ANY_QUEUE], { on })).toEqual([ANY_QUEUE]);
  });
});

test('queues are forgotten when there are many, but not those that have just notified', async () => {
  const clock = { ms: 0 };
  const allow = wakeUpsAt(clock);
  for (let n = 0; n < 5_000; n++) await allow([`old ${n}`]);
  clock.ms = 10_000;
  for (let n = 0; n < BURST; n++) await allow(['busy']);
  await allow(['new']);
  expect(await allow(['busy'])).toEqual([]);
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ticksToFire } from '../../src/features/schedules/catch-up.ts';
import type { Timing } from '../../src/features/schedules/sql/stored-schedule.ts';
import { ticksOf } from '../../src/features/schedules/timing.ts';
import { depth } from '../support/depth.ts';
import { matcherOf, walk, wallsOf } from './oracle.ts';

const cron = (expression: string, timeZone = 'UTC', more: Partial<Timing> = {}) =>
  ticksOf({ cron: expression, everyMs: null, timeZone, startsAtMs: null, endsAtMs: null, ...more }, 0);

const every = (everyMs: number, createdAt: string, more: Partial<Timing> = {}) =>
  ticksOf(
    { cron: null, everyMs, timeZone: 'UTC', startsAtMs: null, endsAtMs: null, ...more },
    Date.parse(createdAt),
  );

/** The first ticks after a time, as texts. */
function first(count: number, ticks: ReturnType<typeof cron>, after: string): string[] {
  const found: string[] = [];
  let at: number | undefined = Date.parse(after);
  while (found.length < count) {
    at = ticks.after(at);
    if (at === undefined) break;
    found.push(new Date(at).toISOString().replace(/:00\.000Z$/, 'Z'));
  }
  return found;
}

test.each([0, -5, Number.NaN])('an interval of %s milliseconds, by other hands, is refused', (everyMs) => {
  expect(() => every(everyMs, '2026-01-01T00:00Z')).toThrow(/every_ms must be at least 1, got/);
});

test('a look back to an infinite time ends', () => {
  const now = Date.parse('2026-01-01T00:00Z');
  expect(every(1_000, '2026-01-01T00:00Z').newest(1, Number.NaN, now)).toEqual([]);
  expect(cron('* * * * *').newest(1, Number.NEGATIVE_INFINITY, now)).toEqual([now]);
});

describe('a change of the clock', () => {
  // Each zone, a day before a change, and the ticks that follow; all by hand.
  test.each([
    [
      'Vienna, a gap',
      '30 2 * * *',
      'Europe/Vienna',
      '2026-03-28T02:00Z',
      ['2026-03-29T01:00Z', '2026-03-30T00:30Z'],
    ],
    [
      'Vienna, several in a gap',
      '*/10 2 * * *',
      'Europe/Vienna',
      '2026-03-29T00:30Z',
      ['2026-03-29T01:00Z', '2026-03-30T00:00Z'],
    ],
    [
      'Vienna, before and in a gap',
      '30 1,2 * * *',
      'Europe/Vienna',
      '2026-03-29T00:00Z',
      ['2026-03-29T00:30Z', '2026-03-29T01:00Z', '2026-03-29T23:30Z'],
    ],
    ['Vienna, the end of a gap', '30 2 * * *', 'Europe/Vienna', '2026-03-29T00:59Z', ['2026-03-29T01:00Z']],
    [
      'Vienna, in and after a gap',
      '0 2,3 * * *',
      'Europe/Vienna',
      '2026-03-29T00:30Z',
      ['2026-03-29T01:00Z', '2026-03-30T00:00Z'],
    ],
    [
      'Vienna, twice',
      '15 1,2,3 * * *',
      'Europe/Vienna',
      '2026-10-24T22:30Z',
      ['2026-10-24T23:15Z', '2026-10-25T00:15Z', '2026-10-25T02:15Z'],
    ],
    [
      'Vienna, every hour, twice',
      '0 * * * *',
      'Europe/Vienna',
      '2026-10-24T23:30Z',
      ['2026-10-25T00:00Z', '2026-10-25T01:00Z', '2026-10-25T02:00Z'],
    ],
    [
      'Vienna, every hour, a gap',
      '30 * * * *',
      'Europe/Vienna',
      '2026-03-29T00:00Z',
      ['2026-03-29T00:30Z', '2026-03-29T01:30Z'],
    ],
    ...['*/1', '0-23', '0-11,12-23'].flatMap((hours): [string, string, string, string, string[]][] => [
      [
        `Vienna, every hour as ${hours}, twice`,
        `0 ${hours} * * *`,
        'Europe/Vienna',
        '2026-10-24T23:30Z',
        ['2026-10-25T00:00Z', '2026-10-25T01:00Z', '2026-10-25T02:00Z'],
      ],
      [
        `Vienna, every hour as ${hours}, a gap`,
        `30 ${hours} * * *`,
        'Europe/Vienna',
        '2026-03-29T00:00Z',
        ['2026-03-29T00:30Z', '2026-03-29T01:30Z'],
      ],
    ]),
    [
      'New York, a gap',
      '0 2 * * *',
      'America/New_York',
      '2026-03-07T12:00Z',
      ['2026-03-08T07:00Z', '2026-03-09T06:00Z'],
    ],
    [
      'New York, twice',
      '30 1 * * *',
      'America/New_York',
      '2026-10-31T12:00Z',
      ['2026-11-01T05:30Z', '2026-11-02T06:30Z'],
    ],
    [
      'London, twice',
      '30 1 * * *',
      'Europe/London',
      '2026-10-24T12:00Z',
      ['2026-10-25T00:30Z', '2026-10-26T01:30Z'],
    ],
    [
      'Lord Howe, half an hour of gap',
      '15 2 * * *',
      'Australia/Lord_Howe',
      '2026-10-03T00:00Z',
      ['2026-10-03T15:30Z', '2026-10-04T15:15Z'],
    ],
    [
      'Lord Howe, not in the gap',
      '45 2 * * *',
      'Australia/Lord_Howe',
      '2026-10-03T00:00Z',
      ['2026-10-03T15:45Z', '2026-10-04T15:45Z'],
    ],
    [
      'Lord Howe, half an hour twice',
      '45 1 * * *',
      'Australia/Lord_Howe',
      '2026-04-04T00:00Z',
      ['2026-04-04T14:45Z', '2026-04-05T15:15Z'],
    ],
    [
      'Lord Howe, every half hour',
      '*/30 * * * *',
      'Australia/Lord_Howe',
      '2026-04-04T14:00Z',
      ['2026-04-04T14:30Z', '2026-04-04T15:00Z', '2026-04-04T15:30Z', '2026-04-04T16:00Z'],
    ],
    [
      'Santiago, no midnight',
      '0 */6 * * *',
      'America/Santiago',
      '2026-09-05T23:00Z',
      ['2026-09-06T04:00Z', '2026-09-06T09:00Z'],
    ],
    [
      'Santiago, an hour before midnight twice',
      '30 * 4 4 *',
      'America/Santiago',
      '2026-04-05T02:00Z',
      ['2026-04-05T02:30Z', '2026-04-05T03:30Z', '2027-04-04T04:30Z'],
    ],
    [
      'Cairo, no midnight',
      '0 0 * * *',
      'Africa/Cairo',
      '2026-04-23T12:00Z',
      ['2026-04-23T22:00Z', '2026-04-24T21:00Z'],
    ],
    [
      'Havana, midnight twice',
      '15 0 * * *',
      'America/Havana',
      '2026-10-31T12:00Z',
      ['2026-11-01T04:15Z', '2026-11-02T05:15Z'],
    ],
    [
      'Chatham, three quarters of an hour off',
      '45 2 * * *',
      'Pacific/Chatham',
      '2026-09-25T14:00Z',
      ['2026-09-26T14:00Z', '2026-09-27T13:00Z'],
    ],
    [
      'Troll, two hours',
      '0 2 * * *',
      'Antarctica/Troll',
      '2026-03-28T12:00Z',
      ['2026-03-29T01:00Z', '2026-03-30T00:00Z'],
    ],
    [
      'Apia, a day that never was',
      '0 12 * * *',
      'Pacific/Apia',
      '2011-12-29T23:00Z',
      ['2011-12-30T10:00Z', '2011-12-30T22:00Z'],
    ],
  ])('%s', (_, expression, timeZone, after, expected) => {
    expect(first(expected.length, cron(expression, timeZone), after)).toEqual(expected);
  });

  const zones = [
    'Europe/Vienna',
    'America/New_York',
    'Europe/London',
    'Australia/Lord_Howe',
    'America/Santiago',
    'Africa/Cairo',
    'America/Havana',
    'Pacific/Chatham',
    'Antarctica/Troll',
  ];
  /** Days around which clocks are changed in these zones, and one on which none is. */
  const days = [
    '2026-03-07',
    '2026-03-28',
    '2026-04-04',
    '2026-04-23',
    '2026-06-15',
    '2026-09-05',
    '2026-09-26',
    '2026-10-03',
    '2026-10-24',
    '2026-10-29',
    '2026-10-31',
  ];
  const field = (min: number, max: number) =>
    fc.oneof(
      fc.constant('*'),
      fc.integer({ min, max }).map(String),
      fc.integer({ min: 2, max: 7 }).map((step) => `*/${step}`),
      fc
        .tuple(fc.integer({ min, max }), fc.integer({ min, max }))
        .map((ends) => ends.sort((a, b) => a - b).join('-')),
      fc
        .uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 4 })
        .map((values) => values.join(',')),
    );
  const hour = fc.oneof(
    field(0, 23),
    fc.constantFrom('0', '1', '2', '3', '1-3', '0,2', '23', '*/6', '*/1', '0-23', '*'),
  );
  const expressions = fc
    .tuple(field(0, 59), hour, fc.constant('*'), fc.constant('*'), fc.oneof(fc.constant('*'), field(0, 7)))
    .map((fields) => fields.join(' '));

  test.each(zones)(
    'in %s every expression ticks as a daemon that walks through the minutes',
    (timeZone) => {
      for (const day of days) {
        const fromMs = Date.parse(`${day}T00:00Z`);
        const walls = wallsOf(timeZone, fromMs, 3 * 1_440);
        const endMs = fromMs + (walls.length - 1) * 60_000;
        fc.assert(
          fc.property(expressions, (expression) => {
            const expected = walk(expression, walls, fromMs);
            const ticks = cron(expression, timeZone);
            const found: number[] = [];
            for (let at = ticks.after(fromMs - 1); at !== undefined && at <= endMs; at = ticks.after(at))
              found.push(at);
            expect(found.map((at) => new Date(at).toISOString())).toEqual(
              expected.map((at) => new Date(at).toISOString()),
            );
            expect(ticks.newest(5, fromMs - 1, endMs)).toEqual(expected.slice(-5));
          }),
          { numRuns: depth(3, 10) },
        );
      }
    },
    240_000,
  );
});

describe('a cron expression', () => {
  test('of six fields has seconds', () => {
    const ticks = cron('*/20 0 3 * * *');
    expect(ticks.after(Date.parse('2026-05-01T03:00:20Z'))).toBe(Date.parse('2026-05-01T03:00:40Z'));
  });

  test('knows names, also of ranges', () => {
    expect(first(2, cron('0 9 * Jan-MAR mon-fri'), '2026-01-02T12:00Z')).toEqual([
      '2026-01-05T09:00Z',
      '2026-01-06T09:00Z',
    ]);
  });

  test('takes either day where both are restricted', () => {
    expect(first(3, cron('0 0 13 * 5'), '2026-11-01T00:00Z')).toEqual([
      '2026-11-06T00:00Z',
      '2026-11-13T00:00Z',
      '2026-11-20T00:00Z',
    ]);
  });

  test('of leap days waits for one', () => {
    expect(first(2, cron('0 0 29 2 *'), '2096-03-01T00:00Z')).toEqual([
      '2104-02-29T00:00Z',
      '2108-02-29T00:00Z',
    ]);
  });

  test('is matched as the matcher says, over years', () => {
    const expression = '7 11 1,15 */3 2';
    const matches = matcherOf(expression);
    const expected: string[] = [];
    for (let day = Date.parse('2026-01-01T11:07Z'); expected.length < 40; day += 86_400_000) {
      if (matches(day)) expected.push(new Date(day).toISOString().replace(':00.000Z', 'Z'));
    }
    expect(first(40, cron(expression), '2025-12-31T23:00Z')).toEqual(expected);
  });
});

describe('an interval', () => {
  test('is counted from the creation, in whole seconds, and does not drift', () => {
    const ticks = every(90_000, '2026-01-01T00:00:10.700Z');
    expect(ticks.after(Date.parse('2026-01-01T00:00:10.700Z'))).toBe(Date.parse('2026-01-01T00:01:40Z'));
    expect(ticks.after(Date.parse('2026-01-01T00:01:40Z'))).toBe(Date.parse('2026-01-01T00:03:10Z'));
    expect(ticks.after(Date.parse('2036-01-01T00:00:00Z') - 1)).toBe(Date.parse('2036-01-01T00:00:10Z'));
  });

  test('begins at its start and does not tick after its end', () => {
    const ticks = every(60_000, '2026-01-01T00:00:30Z', {
      startsAtMs: Date.parse('2026-02-01T00:00Z'),
      endsAtMs: Date.parse('2026-02-01T00:02Z'),
    });
    expect(first(9, ticks, '2026-01-01T00:00:30Z')).toEqual([
      '2026-02-01T00:00Z',
      '2026-02-01T00:01Z',
      '2026-02-01T00:02Z',
    ]);
  });
});

test('an expression begins at its start and does not tick after its end', () => {
  const ticks = cron('0 * * * *', 'UTC', {
    startsAtMs: Date.parse('2026-02-01T00:00Z'),
    endsAtMs: Date.parse('2026-02-01T01:30Z'),
  });
  expect(first(9, ticks, '2026-01-01T00:00Z')).toEqual(['2026-02-01T00:00Z', '2026-02-01T01:00Z']);
});

describe('the ticks to fire', () => {
  const at = (text: string) => Date.parse(`2026-05-01T${text}Z`);
  const hourly = cron('0 * * * *');

  test.each([
    ['latest', '09:00:00', ['09:00']],
    ['latest', '12:30:00', ['12:00']],
    ['all', '12:30:00', ['09:00', '10:00', '11:00', '12:00']],
    ['none', '12:30:00', []],
    ['none', '12:00:59', ['12:00']],
    ['none', '12:01:00', []],
    ['latest', '08:59:59', []],
    ['all', '08:59:59', []],
  ] as const)('%s, at %s', (catchUp, now, expected) => {
    expect(ticksToFire(hourly, catchUp, at('08:00'), at(now))).toEqual(expected.map(at));
  });

  test('are the newest thousand of all', () => {
    const ticks = ticksToFire(cron('* * * * * *'), 'all', at('00:00'), at('12:00'));
    expect(ticks).toHaveLength(1_000);
    expect([ticks[0], ticks.at(-1)]).toEqual([at('12:00') - 999_000, at('12:00')]);
  });

  test('of a year of seconds are found without walking through it', () => {
    const startMs = performance.now();
    expect(ticksToFire(cron('* * * * * *'), 'latest', at('00:00') - 31_536_000_000, at('00:00'))).toEqual([
      at('00:00'),
    ]);
    expect(performance.now() - startMs).toBeLessThan(1_000);
  });
});

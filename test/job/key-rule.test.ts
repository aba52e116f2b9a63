import { defineJob, type EnqueueOptions } from 'drizzle-queue';
import { describe, expect, test } from 'vitest';
import type { GivenOptions } from '../../src/core/job/enqueue-options.ts';
import { newJob } from '../../src/core/job/new-job.ts';

const job = defineJob('sync');
const made = (options: GivenOptions) => newJob(job, undefined, options);

describe('the rule of a key', () => {
  test.each<[GivenOptions, object]>([
    [{ debounce: { key: 'k', delayMs: 5 } }, { type: 'debounce', key: 'k', maxWaitMs: null }],
    [{ debounce: { key: 'k', delayMs: 5, maxWaitMs: 5 } }, { type: 'debounce', key: 'k', maxWaitMs: 5 }],
    [{ throttle: { key: 'k', perMs: 5 } }, { type: 'throttle', key: 'k', perMs: 5, trailing: false }],
    [
      { throttle: { key: 'k', perMs: 1.4, trailing: true } },
      { type: 'throttle', key: 'k', perMs: 1, trailing: true },
    ],
    [{ replace: { key: 'k' } }, { type: 'replace', key: 'k', keepRunAt: false }],
    [{ replace: { key: 'k', runAt: 'keep' } }, { type: 'replace', key: 'k', keepRunAt: true }],
    [
      { uniqueKey: 'k', unique: 'waiting' },
      { type: 'waiting', key: 'k' },
    ],
    [
      { uniqueKey: 'k', unique: { forMs: 7 } },
      { type: 'period', key: 'k', forMs: 7 },
    ],
  ])('of %j', (options, rule) => {
    expect(made(options)).toMatchObject({ rule, uniqueKey: null });
  });

  test('is none for a plain unique key', () => {
    for (const unique of ['live', undefined] as const) {
      const plain = made({ uniqueKey: 'k', unique });
      expect(plain).toMatchObject({ uniqueKey: 'k' });
      expect(Object.keys(plain)).not.toContain('rule');
    }
  });

  test('a debounced job is due after its delay', () => {
    expect(made({ debounce: { key: 'k', delayMs: 1_234 } })).toMatchObject({ delayMs: 1_234 });
  });
});

describe('refused is', () => {
  const debounce = { key: 'k', delayMs: 5 };
  const throttle = { key: 'k', perMs: 5 };
  const replace = { key: 'k' };

  test.each<[string, GivenOptions, string]>([
    ['two rules', { debounce, throttle }, 'debounce and throttle cannot be combined'],
    ['two others', { replace, uniqueKey: 'u' }, 'replace and uniqueKey cannot be combined'],
    ['all of them', { debounce, throttle, replace, uniqueKey: 'u' }, 'debounce and throttle and replace and'],
    [
      'unique without a key',
      { unique: 'waiting' },
      'unique needs uniqueKey: it says for how long the key counts',
    ],
    ['a time beside debounce', { debounce, delayMs: 5 }, 'leave out delayMs and runAt'],
    ['another time beside it', { debounce, runAt: new Date() }, 'leave out delayMs and runAt'],
  ])('%s', (_, options, message) => {
    expect(() => made(options)).toThrow(TypeError);
    expect(() => made(options)).toThrow(`enqueue('sync'): `);
    expect(() => made(options)).toThrow(message);
  });

  const odd: readonly unknown[] = [
    { unique: 'ever', uniqueKey: 'k' },
    { unique: null, uniqueKey: 'k' },
    { unique: {}, uniqueKey: 'k' },
    { unique: { forMs: 0 }, uniqueKey: 'k' },
    { unique: { forMs: Number.NaN }, uniqueKey: 'k' },
    { unique: { forMs: 5, key: 'k' }, uniqueKey: 'k' },
    { unique: 'waiting', uniqueKey: '' },
    { unique: 'waiting', uniqueKey: 'ü'.repeat(1_001) },
    { debounce: 5 },
    { debounce: null },
    { debounce: { key: 'k' } },
    { debounce: { delayMs: 5 } },
    { debounce: { key: 'k', delayMs: 0 } },
    { debounce: { key: 'k', delayMs: '5' } },
    { debounce: { key: 'k', delayMs: 5, maxWaitMs: 4 } },
    { debounce: { key: 'k', delayMs: 5, maxWaitMs: Number.POSITIVE_INFINITY } },
    { debounce: { key: 'k', delayMs: 5, maxWait: 6 } },
    { debounce: { key: 'a\0b', delayMs: 5 } },
    { throttle: true },
    { throttle: { key: 'k' } },
    { throttle: { key: 'k', perMs: 0 } },
    { throttle: { key: 5, perMs: 5 } },
    { throttle: { key: 'k', perMs: 5, trailing: 'yes' } },
    { throttle: { key: 'k', perMs: 5, per: 5 } },
    { replace: 'k' },
    { replace: { key: '' } },
    { replace: { key: 'k', runAt: new Date() } },
    { replace: { key: 'k', delayMs: 5 } },
  ];
  test.each(odd.map((options) => [options]))('%j', (options) => {
    const refused = () => made(options as EnqueueOptions);
    expect(refused).toThrow(/^enqueue\('sync'\): (unique|debounce|throttle|replace)/);
    expect(refused).toThrow(expect.toSatisfy((e) => e instanceof TypeError || e instanceof RangeError));
  });
});

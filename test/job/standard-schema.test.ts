import { unvalidated } from 'drizzle-queue';
import * as v from 'valibot';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { isStandardSchema } from '../../src/core/job/standard-schema.ts';

test('schemas are told from other values', () => {
  const callable = Object.assign(() => undefined, { '~standard': z.string()['~standard'] });
  for (const schema of [z.string(), v.string(), unvalidated<string>(), callable])
    expect(isStandardSchema(schema)).toBe(true);
  for (const other of [null, undefined, 5, 'string', {}, () => 1, { '~standard': null }, { '~standard': {} }])
    expect(isStandardSchema(other)).toBe(false);
});

test('unvalidated() lets every value through as it is', async () => {
  const value = { any: ['thing'] };
  expect(await unvalidated<{ another: number }>()['~standard'].validate(value)).toEqual({ value });
});

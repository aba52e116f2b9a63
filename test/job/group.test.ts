import { defineJob, InvalidPayloadError, unvalidated } from 'drizzle-queue';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { newJob } from '../../src/core/job/new-job.ts';

const exported = defineJob('export', {
  payload: z.object({ tenant: z.string(), rows: z.coerce.number<string>() }),
  group: ({ tenant }) => tenant,
  cost: ({ rows }) => Number(rows),
});

const payload = { tenant: 'acme', rows: '3' };

describe('the group and the cost of a job', () => {
  test('are what the definition makes of the payload as it was given', () => {
    expect(newJob(exported, payload)).toMatchObject({ group: 'acme', cost: 3 });
  });

  test('are those of the enqueue, and then the functions are not called', () => {
    const never = defineJob('never', {
      payload: z.string(),
      group: () => {
        throw new Error('called');
      },
      cost: () => {
        throw new Error('called');
      },
    });
    expect(newJob(never, 'x', { group: 'other', cost: 7 })).toMatchObject({ group: 'other', cost: 7 });
  });

  test('are none where neither says anything', () => {
    const made = newJob(defineJob('plain'), undefined);
    expect(Object.keys(made)).not.toContain('group');
    expect(Object.keys(made)).not.toContain('cost');
  });

  test('are asked for once the payload is known to be valid', async () => {
    // @ts-expect-error without its tenant
    const wrong = () => newJob(exported, { rows: '3' });
    expect(wrong).toThrow(InvalidPayloadError);
    const later = defineJob('later', {
      payload: z.object({ tenant: z.string() }).refine(async () => true),
      group: ({ tenant }) => tenant,
    });
    expect(await newJob(later, { tenant: 'acme' })).toMatchObject({ group: 'acme' });
  });
});

describe('a wrong', () => {
  test.each(['', '*', 'a\0b', 'ü'.repeat(101), 7, null, Symbol('x')])('group %s is refused', (group) => {
    const message = /^enqueue\('plain'\): group must/;
    expect(() => newJob(defineJob('plain'), undefined, { group: group as string })).toThrow(message);
    const computed = defineJob('plain', { group: () => group as string });
    expect(() => newJob(computed, undefined)).toThrow(TypeError);
    expect(() => newJob(computed, undefined)).toThrow(
      /^enqueue\('plain'\): what its definition returns as group must/,
    );
  });

  test.each([0, -1, 1.5, 10_001, Number.NaN, '7', null])('cost %s is refused', (cost) => {
    const given = () => newJob(defineJob('plain'), undefined, { cost: cost as number });
    expect(given).toThrow(RangeError);
    expect(given).toThrow(/^enqueue\('plain'\): cost must be a whole number from 1 to 10000/);
    const computed = defineJob('plain', { cost: () => cost as number });
    expect(() => newJob(computed, undefined)).toThrow(
      /^enqueue\('plain'\): what its definition returns as cost must/,
    );
  });

  test('function is reported with what it threw', () => {
    const cause = new Error('no tenant');
    const job = defineJob('odd', {
      payload: unvalidated<{ tenant?: string }>(),
      group: () => {
        throw cause;
      },
    });
    const failed = () => newJob(job, {});
    expect(failed).toThrow(TypeError);
    expect(failed).toThrow("enqueue('odd'): the group function of its definition threw: no tenant");
    expect(failed).toThrow(expect.objectContaining({ cause }));
  });

  test('a promise is no group', () => {
    const job = defineJob('odd', { group: (async () => 'acme') as unknown as () => string });
    expect(() => newJob(job, undefined)).toThrow(/must be a string/);
  });

  test.each(['group', 'cost'] as const)('%s of a definition is refused where it is made', (name) => {
    expect(() => defineJob('odd', { [name]: 'acme' })).toThrow(
      `defineJob('odd'): ${name} must be a function of the payload`,
    );
  });
});

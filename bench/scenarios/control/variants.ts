import type { System } from '../../harness/system.ts';
import { groupedQueue, limitedQueue, withoutResults } from '../../systems/drizzle-queue/system.ts';

/** Something that is drained beside the others. */
export interface Variant {
  readonly name: string;
  readonly system: System;
  /** Only 20 jobs of each of 1,000 keys are counted, `alone`, or `beside` the others. */
  readonly counted?: 'alone' | 'beside';
  /** The row that its rate is divided by. @default plain */
  readonly over?: string;
}

/** The jobs of one key wait beside those of 1,000 others, which have 20 each. */
export const KEYS = 1_000;
export const PER_KEY = 20;

export const plain: Variant = { name: 'plain', system: withoutResults };
export const manyKeys: Variant = {
  name: '100,000 keys × 1, in order',
  system: groupedQueue('100,000 keys', { groups: { serial: 'end' } }, 'i::text'),
};
export const hotKey: Variant = {
  name: 'one key × 100,000, in order',
  system: groupedQueue('one key', { groups: { serial: 'end' } }, `'hot'`),
};
/** The hot key's jobs have the higher numbers. */
const withoutHot: Variant = {
  name: '1,000 keys × 20, in order',
  system: groupedQueue('1,000 keys', { groups: { serial: 'end' } }, `(i % ${KEYS})::text`),
  counted: 'alone',
};
export const besideHot: Variant = {
  name: 'the same beside a hot key',
  system: groupedQueue(
    'beside a hot key',
    { groups: { serial: 'end' } },
    `case when i < ${KEYS * PER_KEY} then (i % ${KEYS})::text else 'hot' end`,
  ),
  counted: 'beside',
  over: withoutHot.name,
};
export const tenTenants: Variant = {
  name: 'fair shares, 10 tenants',
  system: groupedQueue('10 tenants', { groups: {} }, '(i % 10)::text'),
};
export const manyTenants: Variant = {
  name: 'fair shares, 10,000 tenants',
  system: groupedQueue('10,000 tenants', { groups: {} }, '(i % 10000)::text'),
};
export const twoPerKey: Variant = {
  name: '2 at once per key, 1,000 keys',
  system: groupedQueue('limit of 2', { groups: { concurrency: 2 } }, '(i % 1000)::text'),
};
export const unreachedRate: Variant = {
  name: 'a rate that is not reached',
  system: limitedQueue('rated', { rate: { limit: 1_000_000, perMs: 1_000 } }),
};

/** What of this library `control` measures. */
export const VARIANTS: readonly Variant[] = [
  plain,
  {
    name: '10 at once of the queue',
    system: limitedQueue('limit of the queue', { concurrency: 10 }),
  },
  tenTenants,
  manyTenants,
  manyKeys,
  hotKey,
  withoutHot,
  besideHot,
  twoPerKey,
  unreachedRate,
];

import { createQueue, type LimitList, type LimitRecord, type Limits, limitsIn } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import { createControlTables, queueLimits } from 'drizzle-queue/schema/control';
import { expectTypeOf, test } from 'vitest';
import type { LimitingFeature } from '../../src/core/worker/limiting-feature.ts';
import { postgresJs as db } from './databases.ts';

const queue = createQueue({ limits: limitsIn(control, { mail: { concurrency: 5, groups: {} } }) });

test('only a queue that was given limits has them', () => {
  expectTypeOf(queue.limits).toExtend<Limits>();
  expectTypeOf(queue.limits.set).returns.toEqualTypeOf<Promise<LimitRecord>>();
  expectTypeOf(queue.limits.list).returns.toEqualTypeOf<Promise<LimitList>>();
  // @ts-expect-error it was given none
  createQueue().limits.list(db);
  // A queue with limits may stand in the place of one without.
  expectTypeOf(queue).toExtend<ReturnType<typeof createQueue>>();
});

test('limits are a feature of a queue that workers serve', () => {
  expectTypeOf<Limits>().toExtend<LimitingFeature>();
});

test('limitsIn takes all of its tables, under any names', () => {
  limitsIn(createControlTables({ prefix: 'mail_' }), {});
  // @ts-expect-error the others are missing
  limitsIn({ queueLimits }, {});
  // @ts-expect-error no such setting
  limitsIn(control, { mail: { concurency: 5 } });
});

test('a limit is of a queue, of a kind or of a group', () => {
  queue.limits.set(db, { queue: 'mail' }, { concurrency: 3 });
  queue.limits.set(db, { queue: 'mail', kind: 'newsletter' }, null);
  queue.limits.set(db, { queue: 'mail', group: '*' }, { weight: 2, rate: { limit: 1, perMs: 1_000 } });
  // @ts-expect-error of both
  queue.limits.set(db, { queue: 'mail', kind: 'newsletter', group: 'acme' }, null);
  // @ts-expect-error of which queue?
  queue.limits.set(db, { kind: 'newsletter' }, null);
  // @ts-expect-error it is declared in code
  queue.limits.set(db, { queue: 'mail', group: 'acme' }, { serial: 'end' });
  // @ts-expect-error null removes it
  queue.limits.set(db, { queue: 'mail' }, undefined);
});

import {
  createQueue,
  defineJob,
  defineSchedule,
  exponentialBackoff,
  limitsIn,
  schedulesIn,
} from 'drizzle-queue';
import { z } from 'zod';
import * as schema from './schema.ts';

export const queue = createQueue({
  schedules: schedulesIn(schema.queueSchedules),
  limits: limitsIn(schema, {
    // Tenants take turns, and the digests of one are sent one at a time.
    digests: { groups: { concurrency: 1 } },
  }),
});

export const sendDigest = defineJob('send-digest', {
  payload: z.object({ tenantId: z.int() }),
  output: z.object({ messageId: z.string(), events: z.int() }),
  queue: 'digests',
  group: ({ tenantId }) => String(tenantId),
  timeoutMs: 60_000,
  // Far shorter than in earnest, where the default is the better one: one second, doubling up to one hour.
  backoff: exponentialBackoff({ initialMs: 100, maxMs: 500 }),
});

/** The name of a tenant's schedule. */
export function digestName(tenantId: number): string {
  return `digest-${tenantId}`;
}

/** Each morning at eight, where the tenant is. */
export function digestSchedule(tenant: { readonly id: number; readonly timeZone: string }) {
  return defineSchedule(digestName(tenant.id), {
    job: sendDigest,
    payload: { tenantId: tenant.id },
    cron: '0 8 * * *',
    timeZone: tenant.timeZone,
    // After a night without workers one digest says it all.
    catchUp: 'latest',
  });
}

import { createQueue, defineJob, exponentialBackoff, limitsIn } from 'drizzle-queue';
import { z } from 'zod';
import { DeliveryError } from './delivery-error.ts';
import * as schema from './schema.ts';

export const queue = createQueue({
  limits: limitsIn(schema, {
    // Endpoints take turns, and one that hangs takes no more than four slots of the workers.
    webhooks: { groups: { concurrency: 4 } },
  }),
});

// In earnest over three days: `exponentialBackoff({ initialMs: 10_000, maxMs: 24 * 3_600_000, factor: 4 })`, 12 attempts.
const backoff = exponentialBackoff({ initialMs: 100, maxMs: 400 });

/** One event for one endpoint, so that an endpoint that fails repeats nothing for the others. */
export const deliverEvent = defineJob('deliver-event', {
  // The event as it was when it happened, and not the order's id: a delivery days later still says what happened then.
  payload: z.object({
    endpointId: z.int(),
    type: z.string(),
    timestamp: z.iso.datetime(),
    data: z.object({ orderId: z.int(), cents: z.int() }),
  }),
  output: z.object({ status: z.int() }),
  queue: 'webhooks',
  group: ({ endpointId }) => String(endpointId),
  maxAttempts: 1_000,
  // In earnest 15 seconds.
  timeoutMs: 2_000,
  backoff: (attempt, error) =>
    Math.max(backoff(attempt, error), error instanceof DeliveryError ? error.retryAfterMs : 0),
});

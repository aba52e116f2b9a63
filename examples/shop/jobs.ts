/**
 * The shop's jobs: what they are called, what they carry, how they are retried. Imported by the shop, which enqueues
 * them, and by the workers, which have the handlers; this file knows neither.
 */
import { createQueue, defineJob, exponentialBackoff } from 'drizzle-queue';
import { queueMetrics } from 'drizzle-queue/schema/metrics';
import { z } from 'zod';

export const queue = createQueue({ metrics: queueMetrics });

// A job carries the order's id and not the order: a retry then reads what the order is by that time.
const ofOrder = z.object({ orderId: z.int() });

// Far shorter than in a real shop, where the defaults (one second, doubling up to one hour) are the better ones.
const backoff = exponentialBackoff({ initialMs: 400, maxMs: 2_000 });

export const sendReceipt = defineJob('send-receipt', {
  payload: ofOrder,
  output: z.object({ messageId: z.string() }),
  queue: 'mail',
  maxAttempts: 5,
  timeoutMs: 5_000,
  backoff,
});

export const packOrder = defineJob('pack-order', {
  payload: ofOrder,
  output: z.object({ parcelId: z.string() }),
  queue: 'warehouse',
  maxAttempts: 5,
  timeoutMs: 5_000,
  backoff,
});

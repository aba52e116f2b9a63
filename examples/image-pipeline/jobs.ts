import { createQueue, defineJob, exponentialBackoff } from 'drizzle-queue';
import { z } from 'zod';
import { manifestSchema } from './manifest.ts';

export const queue = createQueue();

// Far shorter than in earnest, where the default is the better one: one second, doubling up to one hour.
const backoff = exponentialBackoff({ initialMs: 100, maxMs: 500 });

export const makeSizes = defineJob('make-sizes', {
  // The bytes stay in the object storage: a job only says where.
  payload: z.object({ imageId: z.uuid() }),
  output: manifestSchema,
  queue: 'images',
  maxAttempts: 5,
  timeoutMs: 120_000,
  backoff,
});

/** What `makeSizes` reports while it runs. */
export const progressSchema = z.object({ done: z.int(), of: z.int() });

/** Removes what a cancelled `makeSizes` has left. */
export const removeFiles = defineJob('remove-files', {
  payload: z.object({ imageId: z.uuid(), jobId: z.int() }),
  queue: 'cleanup',
  backoff,
});

import { createQueue, defineJob, exponentialBackoff, limitsIn } from 'drizzle-queue';
import { z } from 'zod';
import * as schema from './schema';

export const queue = createQueue({
  limits: limitsIn(schema, {
    llm: {
      // What the provider takes, from all workers together: three requests at once, and thirty started in a second.
      concurrency: 3,
      rate: { limit: 30, perMs: 1_000 },
      // Users take turns, and each has one request under way.
      groups: { concurrency: 1 },
    },
  }),
});

export const generateTitle = defineJob('generate-title', {
  payload: z.object({ chatId: z.uuid(), userId: z.string() }),
  output: z.object({ title: z.string() }),
  queue: 'llm',
  group: ({ userId }) => userId,
  maxAttempts: 8,
  timeoutMs: 30_000,
  // The page waits for it, so the first retries come soon.
  backoff: exponentialBackoff({ initialMs: 250, maxMs: 60_000 }),
});

import { createQueue, defineJob, limitsIn } from 'drizzle-queue';
import { z } from 'zod';
import * as schema from './schema.ts';

export const queue = createQueue({
  limits: limitsIn(schema, {
    // The tenants take turns, and none has more than two exports running, in all processes together.
    exports: { groups: { concurrency: 2 } },
    // The entries of an account are booked one after the other.
    ledger: { groups: { serial: 'end' } },
  }),
});

export const exportData = defineJob('export-data', {
  payload: z.object({ tenant: z.string() }),
  queue: 'exports',
  group: ({ tenant }) => tenant,
});

export const book = defineJob('book', {
  payload: z.object({ account: z.string(), number: z.number(), cents: z.number() }),
  queue: 'ledger',
  group: ({ account }) => account,
});

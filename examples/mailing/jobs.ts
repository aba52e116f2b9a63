import { createQueue, defineJob, workflowsIn } from 'drizzle-queue';
import { z } from 'zod';
import * as schema from './schema.ts';

export const queue = createQueue({ workflows: workflowsIn(schema) });

/** One letter. A hundred thousand results of them would tell nothing that is not in `letters`. */
export const sendLetter = defineJob('send-letter', {
  payload: z.object({ campaign: z.string(), customerId: z.int(), email: z.string() }),
  queue: 'letters',
  keepResult: false,
});

/** Runs once, after the last letter. */
export const reportMailing = defineJob('report-mailing', {
  payload: z.object({ campaign: z.string() }),
});

import { createQueue, defineJob, defineSignal, fixedBackoff, workflowsIn } from 'drizzle-queue';
import { z } from 'zod';
import * as schema from './schema.ts';

export const queue = createQueue({ workflows: workflowsIn(schema) });

/** Answers one ticket, in as many turns as that takes. */
export const answerTicket = defineJob('answer-ticket', {
  payload: z.object({ ticketId: z.int(), question: z.string(), budgetCents: z.int() }),
  queue: 'agents',
  // The demo is in a hurry. By default a retry waits a second, then two, and so on.
  backoff: fixedBackoff(100),
});

/** What a person says about a refund that the agent wants to make. */
export const approval = defineSignal('approval', z.object({ by: z.string(), ok: z.boolean() }));

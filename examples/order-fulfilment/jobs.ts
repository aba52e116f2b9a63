import { createQueue, defineJob, defineSignal, fixedBackoff, workflowsIn } from 'drizzle-queue';
import { z } from 'zod';
import * as schema from './schema.ts';

/** Signs the links. All processes have the same one; in an app it is a secret of at least 32 bytes, and has no default. */
const LINK_SECRET = process.env.LINK_SECRET ?? 'a secret that only this demo may have';

export const queue = createQueue({ workflows: workflowsIn(schema, { secrets: [LINK_SECRET] }) });

export const fulfil = defineJob('fulfil', {
  payload: z.object({ orderId: z.number(), cents: z.number() }),
  output: z.enum(['shipped', 'refunded']),
  // The demo is in a hurry. By default a retry waits a second, then two, and so on.
  backoff: fixedBackoff(100),
});

/** What a clerk says about an expensive order. */
export const approval = defineSignal('approval', z.object({ by: z.string(), ok: z.boolean() }));

/** The other side, as a customer writes it: it believes only what is signed, and does each event once. */
import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import type { Database } from './database.ts';
import { receivedEvents } from './schema.ts';
import { isSigned } from './signature.ts';

const eventSchema = z.object({
  type: z.string(),
  data: z.object({ orderId: z.number(), cents: z.number() }),
});

/** Takes a request with the body as it came; answers the status for it. */
export async function receive(
  db: Database,
  secret: string,
  headers: IncomingHttpHeaders,
  body: string,
): Promise<number> {
  if (!isSigned(secret, headers, body)) return 401;
  const { type, data } = eventSchema.parse(JSON.parse(body));
  // What else the event leads to belongs into this transaction, behind the insert. A repetition inserts nothing.
  await db
    .insert(receivedEvents)
    .values({ webhookId: String(headers['webhook-id']), type, data })
    .onConflictDoNothing();
  return 200;
}

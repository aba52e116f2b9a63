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

/** Takes a request with the body as it came; returns the status to answer with. */
export async function receive(
  db: Database,
  secret: string,
  headers: IncomingHttpHeaders,
  body: string,
): Promise<number> {
  if (!isSigned(secret, headers, body)) return 401;
  const event = eventSchema.safeParse(JSON.parse(body));
  // Not an error of ours, which the sender would answer by sending it again.
  if (!event.success) return 400;
  await db.transaction(async (tx) => {
    const [first] = await tx
      .insert(receivedEvents)
      .values({ webhookId: String(headers['webhook-id']), ...event.data })
      .onConflictDoNothing()
      .returning({ webhookId: receivedEvents.webhookId });
    // Somebody has done it: it was sent again, or is being sent twice at once, and this insert has waited for the other.
    if (first === undefined) return;
    // What the event leads to stands here, by `tx`: it commits with the id, or both are undone and the sender tries again. What takes
    // long or leaves the database (a mail, a request) is a job that is enqueued here.
  });
  return 200;
}

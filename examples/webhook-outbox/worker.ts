/** A process that delivers events, until SIGINT or SIGTERM. */
import { and, eq } from 'drizzle-orm';
import { cancel, createWorker, handlersFor, NonRetryableError, snooze } from 'drizzle-queue';
import { connect } from './database.ts';
import { DeliveryError, retryAfterMs } from './delivery-error.ts';
import { deliverEvent, queue } from './jobs.ts';
import { endpoints } from './schema.ts';
import { signedHeaders } from './signature.ts';

const db = connect();
const { handle } = handlersFor<typeof db>();

const deliveries = handle(deliverEvent, async ({ payload: { endpointId, ...event }, job, signal, db }) => {
  const [endpoint] = await db.select().from(endpoints).where(eq(endpoints.id, endpointId));
  if (endpoint === undefined || endpoint.disabledAt !== null) return cancel('The endpoint is disabled');

  const body = JSON.stringify(event);
  const response = await fetch(endpoint.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      // The job's id is the same in every attempt, so the receiver can tell a repetition.
      ...signedHeaders([endpoint.secret], `msg_${job.id}`, body),
    },
    body,
    redirect: 'manual',
    signal,
  });
  // What it says besides is of no interest, and would keep the connection.
  await response.body?.cancel();
  const { status } = response;
  if (response.ok) return { status };

  const error = new DeliveryError(status, retryAfterMs(response.headers.get('retry-after')));
  // It wants fewer requests: no failure, so no attempt is spent.
  if (status === 429) return snooze(Math.max(error.retryAfterMs, 1_000));
  // It wants none, ever again. Unless its customer has moved it meanwhile: then only the old address is gone.
  if (status === 410) {
    const asked = and(eq(endpoints.id, endpointId), eq(endpoints.url, endpoint.url));
    await db.update(endpoints).set({ disabledAt: new Date() }).where(asked);
  }
  // It will not like the same request any better later.
  if (status >= 400 && status < 500 && status !== 408) throw new NonRetryableError(error.message);
  throw error;
});

const worker = createWorker(db, { queue, handlers: [deliveries], queues: { webhooks: { concurrency: 8 } } });
await worker.run();
await db.$client.end({ timeout: 5 });

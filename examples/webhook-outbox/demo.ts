/**
 * Orders are placed, and two workers deliver their events to a receiver that fails in every way that receivers do, is killed, stays away
 * for a while, and comes back elsewhere. At the end each event that is not refused has arrived, and each was done once.
 */
import { asc, isNull, sql } from 'drizzle-orm';
import { addUp, onStage, type Stage, until } from '../stage/on-stage.ts';
import { NO_ANSWER, type Plan, planOf } from './demo/plan.ts';
import { deliverEvent, queue } from './jobs.ts';
import { placeOrder } from './orders.ts';
import { endpoints, orders, queueJobs, queueResults, receivedEvents, receivedRequests } from './schema.ts';
import { newSecret, signedHeaders } from './signature.ts';

const ORDERS = 32;
const secret = newSecret();

await onStage(import.meta.url, async ({ db, start }) => {
  const workers = [start('worker.ts'), start('worker.ts')];
  const receiver = start('demo/flaky-receiver.ts', { WEBHOOK_SECRET: secret });
  const url = String(await receiver.message());
  await db.insert(endpoints).values([
    { url: `${url}/events`, secret },
    { url: `${url}/gone`, secret: newSecret() },
  ]);

  await placeOrders(db, ORDERS / 2);
  await until('the first events arrive', async () => (await db.$count(receivedEvents)) >= 5);
  await receiver.kill();
  console.log(
    `${await db.$count(receivedEvents)} events have arrived. The receiver is killed; orders go on.`,
  );
  await placeOrders(db, ORDERS / 2);
  await until('deliveries fail', async () => (await connectionsRefused(db)) >= 3);
  console.log('Deliveries fail, and are tried again. The receiver comes back at another address.');
  const second = start('demo/flaky-receiver.ts', { WEBHOOK_SECRET: secret });
  const newUrl = String(await second.message());
  await db
    .update(endpoints)
    .set({ url: `${newUrl}/events` })
    .where(isNull(endpoints.disabledAt));
  await until('all jobs end', async () => (await db.$count(queueJobs)) === 0);

  const forged = [
    await post(newUrl, newSecret(), new Date()),
    await post(newUrl, secret, new Date(Date.now() - 3_600_000)),
  ];
  await second.kill();
  for (const worker of workers) await worker.stop();
  addUp([['Forged and outdated requests refused', '401, 401', forged.join(', ')], ...(await numbers(db))]);
  console.log('Each event that is not refused was delivered at least once, and done once.');
});

/** Places orders, and beside every fourth one that is rolled back. */
async function placeOrders(db: Stage['db'], count: number): Promise<void> {
  for (let number = 1; number <= count; number++) {
    const cart = { email: `customer-${number}@shop.example`, cents: number * 100 };
    await placeOrder(db, { ...cart, reserve: async () => {} });
    if (number % 4 === 0) await placeOrder(db, { ...cart, reserve: soldOut }).catch(() => undefined);
  }
}

async function soldOut(): Promise<never> {
  throw new Error('Nothing is left of it');
}

async function connectionsRefused(db: Stage['db']): Promise<number> {
  const { jobs } = await queue.list(db, { job: deliverEvent });
  return jobs.filter(({ errors }) => errors.some(({ message }) => message.includes('ECONNREFUSED'))).length;
}

/** What somebody sends who does not know the secret, or repeats a request that was sent long ago. */
async function post(url: string, key: string, at: Date): Promise<number> {
  const body = JSON.stringify({ type: 'order.placed', data: { orderId: 0, cents: 1_000_000 } });
  const headers = signedHeaders([key], `msg_forged_${at.getTime()}`, body, at);
  return (await fetch(`${url}/events`, { method: 'POST', headers, body })).status;
}

type Numbers = Parameters<typeof addUp>[0];

async function numbers(db: Stage['db']): Promise<Numbers> {
  const placed = (await db.select({ id: orders.id }).from(orders)).map(({ id }) => id);
  const planned = (plan: Plan) => placed.filter((id) => planOf(id) === plan);
  const deliverable = placed.filter((id) => planOf(id) !== 'refuses');

  const [events, gone] = await db.select().from(endpoints).orderBy(asc(endpoints.id));
  const results = await db
    .select({
      endpoint: sql<number>`(${queueResults.payload} ->> 'endpointId')::int`,
      orderId: sql<number>`(${queueResults.payload} -> 'data' ->> 'orderId')::int`,
      state: queueResults.state,
      errors: queueResults.errors,
      webhookId: sql<string>`'msg_' || ${queueResults.jobId}`,
    })
    .from(queueResults);
  const toEvents = results.filter(({ endpoint }) => endpoint === events?.id);
  const toGone = results.filter(({ endpoint }) => endpoint === gone?.id);
  const refused = toEvents.filter(({ state }) => state === 'discarded');
  const busy = toEvents.filter(({ orderId }) => planOf(orderId) === 'is busy');

  const received = await db.select().from(receivedEvents);
  const requests = await db
    .select()
    .from(receivedRequests)
    .orderBy(asc(receivedRequests.receivedAt), asc(receivedRequests.id));
  const requestsOf = (id: string) => requests.filter(({ webhookId }) => webhookId === id);
  const wasPutOff = (status: number) => status === 429 || status === 503;
  // An answer with `Retry-After: 1`, and the same event again within that second.
  const impatient = requests.filter(({ webhookId, status, receivedAt }, at) => {
    const next = requests.slice(at + 1).find((request) => request.webhookId === webhookId);
    return wasPutOff(status) && next && next.receivedAt.getTime() - receivedAt.getTime() < 1_000;
  });
  // It was taken, the answer got lost, and it came again.
  const repeated = toEvents.filter(
    ({ orderId, state, webhookId }) =>
      planOf(orderId) === 'answers into the void' &&
      requestsOf(webhookId).some(({ status }) => status === NO_ANSWER) &&
      state === 'completed',
  );
  return [
    ['Orders placed', ORDERS, placed.length],
    ['Jobs of them for the endpoint', ORDERS, toEvents.length],
    ['Events received, each once', list(deliverable), list(received.map(({ data }) => data.orderId))],
    ['Events refused with 400', list(planned('refuses')), list(refused.map(({ orderId }) => orderId))],
    [
      '… and why',
      'The endpoint answered 400',
      [...new Set(refused.map(({ errors }) => errors.at(-1)?.message))].join(),
    ],
    [
      'Events received again and not done again',
      list(planned('answers into the void')),
      list(repeated.map(({ orderId }) => orderId)),
    ],
    ['Events put off', list([...planned('is busy'), ...planned('is in maintenance')]), list(putOff())],
    ['… and sent again before their time', 0, impatient.length],
    [
      'Attempts that 429 has spent',
      0,
      busy.filter(({ errors }) => errors.some(({ message }) => message.includes('429'))).length,
    ],
    ['Endpoint that answers 410 disabled', true, gone?.disabledAt instanceof Date],
    ['Events delivered to it', 0, toGone.filter(({ state }) => state === 'completed').length],
  ];

  function putOff(): number[] {
    return toEvents
      .filter(({ webhookId }) => requestsOf(webhookId).some(({ status }) => wasPutOff(status)))
      .map(({ orderId }) => orderId);
  }
}

function list(ids: readonly number[]): string {
  return [...ids].sort((a, b) => a - b).join(' ');
}

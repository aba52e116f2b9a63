/** The receiver as a process that fails on plan. It sends its URL to the demo. Its paths: /events, and /gone for an endpoint that was given up. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { eq } from 'drizzle-orm';
import { connect } from '../database.ts';
import { receive } from '../receiver.ts';
import { receivedRequests } from '../schema.ts';
import { NO_ANSWER, planOf } from './plan.ts';

const db = connect();
const secret = process.env.WEBHOOK_SECRET ?? '';

const server = createServer((request, response) => {
  answer(request, response).catch((error: unknown) => {
    console.error(error);
    response.destroy();
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) process.send?.(`http://127.0.0.1:${address.port}`);
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const receivedAt = new Date();
  const body = await text(request);
  const webhookId = String(request.headers['webhook-id']);
  const isFirst = (await db.$count(receivedRequests, eq(receivedRequests.webhookId, webhookId))) === 0;
  const note = (status: number) => db.insert(receivedRequests).values({ webhookId, status, receivedAt });
  const end = async (status: number, headers = {}) => {
    response.writeHead(status, headers).end();
    await note(status);
  };

  if (request.url === '/gone') return await end(410);
  switch (planOf(JSON.parse(body).data.orderId)) {
    case 'refuses':
      return await end(400);
    case 'breaks':
      if (isFirst) return await end(500);
      break;
    case 'is busy':
      if (isFirst) return await end(429, { 'retry-after': '1' });
      break;
    case 'is in maintenance':
      if (isFirst) return await end(503, { 'retry-after': '1' });
      break;
    case 'hangs':
      // Without an answer: the sender gives up.
      if (isFirst) return void (await note(NO_ANSWER));
      break;
    case 'answers into the void':
      if (isFirst) {
        await receive(db, secret, request.headers, body);
        await note(NO_ANSWER);
        return void response.destroy();
      }
      break;
  }
  await end(await receive(db, secret, request.headers, body));
}

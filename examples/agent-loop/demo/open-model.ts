/** A model without a mind: what it wants next follows from what was said. It keeps books of its bills. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import type { Message, Turn, Wish } from '../model.ts';

export const TURN_CENTS = 3;

export interface Model {
  readonly url: string;
  /** What was billed, by the idempotency keys of the requests. */
  readonly bills: ReadonlyMap<string, number>;
  /** How many requests came with a key that was billed before. */
  readonly repeats: () => number;
  close(): void;
}

/** @param billed is called when a turn is billed, and before it is answered */
export async function openModel(billed: (bills: number) => Promise<void>): Promise<Model> {
  const bills = new Map<string, number>();
  let repeats = 0;
  const server = createServer((request, response) => {
    const answer = async () => {
      const messages = (await json(request)) as Message[];
      const key = String(request.headers['idempotency-key']);
      if (bills.has(key)) repeats++;
      else {
        bills.set(key, TURN_CENTS);
        await billed(bills.size);
      }
      const turn: Turn = { wish: wishAfter(messages), costCents: TURN_CENTS };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(turn));
    };
    answer().catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The model has no port');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${address.port}`, bills, repeats: () => repeats, close };
}

function wishAfter(messages: readonly Message[]): Wish {
  const [question] = messages;
  const last = messages.at(-1)?.text ?? '';
  // It never comes to an end, as some do.
  if (question?.text.includes('riddle') || last === question?.text) return { tool: 'look up order' };
  if (last.startsWith('The order')) return { tool: 'refund', cents: 4_000 };
  if (last.includes('approved')) return { tool: 'write letter', body: 'You have your money back.' };
  if (last.includes('refused')) return { tool: 'write letter', body: 'We cannot refund this order.' };
  return { answer: 'The customer was told.' };
}

/** An OpenAI-compatible API that fails on plan: what a message says is what becomes of it at first. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';

export interface ModelRequest {
  readonly user: string;
  readonly message: string;
  readonly status: number;
  readonly at: number;
}

export interface Model {
  readonly url: string;
  readonly requests: readonly ModelRequest[];
  /** The most requests that were under way at once, of all users and of one. */
  readonly most: { all: number; ofOneUser: number };
  /** Lets those that were told to wait go on. */
  release(): void;
  close(): void;
}

/** How long it takes to think, so that requests would be under way together if nothing kept them from it. */
const THINKING_MS = 150;

export async function openModel(key: string): Promise<Model> {
  const requests: ModelRequest[] = [];
  const underWay: string[] = [];
  const most = { all: 0, ofOneUser: 0 };
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The model has no port');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${address.port}/v1`, requests, most, release, close };

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { user, messages } = JSON.parse(await text(request));
    const message: string = messages.at(-1).content;
    const isFirst = !requests.some((one) => one.message === message);
    const isOurs = request.headers.authorization === `Bearer ${key}`;
    const status = isOurs && request.url === '/v1/chat/completions' ? statusFor(message, isFirst) : 401;
    requests.push({ user, message, status, at: Date.now() });

    underWay.push(user);
    let isOver = false;
    const leave = () => {
      if (!isOver) underWay.splice(underWay.indexOf(user), 1);
      isOver = true;
    };
    response.once('close', leave);
    most.all = Math.max(most.all, underWay.length);
    most.ofOneUser = Math.max(most.ofOneUser, underWay.filter((one) => one === user).length);

    await new Promise((resolve) => setTimeout(resolve, THINKING_MS));
    if (message.includes('wait')) await released;
    const content = message.includes('empty') && isFirst ? '' : `"About ${message}"`;
    const headers = { 'content-type': 'application/json', ...(status === 429 && { 'retry-after': '1' }) };
    response.writeHead(status, headers);
    leave();
    response.end(
      JSON.stringify(status === 200 ? { choices: [{ message: { content } }] } : { error: { code: status } }),
    );
  }
}

function statusFor(message: string, isFirst: boolean): number {
  if (message.includes('forbidden')) return 400;
  if (message.includes('busy') && isFirst) return 429;
  if (message.includes('broken') && isFirst) return 500;
  return 200;
}

import { describeThrown } from '../../internal.ts';
import type { Dashboard } from './create-dashboard.tsx';

/** What is read of a request of `node:http`, also as Express, Fastify and NestJS pass it on. */
export interface NodeRequest extends AsyncIterable<Uint8Array | string> {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** The whole path, where Express has taken off that of the mount. */
  readonly originalUrl?: string | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** `encrypted` where it speaks TLS. */
  readonly socket: object;
  /** What a parser of bodies has left. */
  readonly body?: unknown;
  readonly readableEnded?: boolean;
}

/** What is used of a response of `node:http` or `node:http2`. */
export interface NodeResponse {
  statusCode: number;
  readonly destroyed: boolean;
  readonly headersSent: boolean;
  setHeader(name: string, value: string | readonly string[]): unknown;
  removeHeader(name: string): unknown;
  end(): unknown;
  end(chunk: Uint8Array): unknown;
  once(event: 'close', listener: () => void): unknown;
}

/** A listener of `node:http`, which is a handler of Express as well. */
export type NodeHandler = (request: NodeRequest, response: NodeResponse) => Promise<void>;

const MAX_BODY = 1_048_576;

/**
 * The dashboard for servers of `node:http`: Express, Fastify, NestJS. It takes the path from `originalUrl`
 * where a router has shortened `url`, and a form from `body` where a parser has read it. It never rejects:
 * `node:http` does not await its listeners, so a rejection would end the process.
 */
export function toNode(dashboard: Dashboard): NodeHandler {
  return async (request, response) => {
    const ended = new AbortController();
    response.once('close', () => ended.abort());
    const answer = await answerOf(dashboard, request, ended.signal);
    // The browser has gone, or another middleware has answered, such as one that limits the time.
    if (response.destroyed || response.headersSent) return;
    try {
      send(answer, request, response);
    } catch (error) {
      // HTTP/2 refuses some headers, which a response of the app's may have.
      console.error('drizzle-queue dashboard:', describeThrown(error));
      if (response.headersSent) return;
      for (const [name] of answer.headers) response.removeHeader(name);
      response.statusCode = 500;
      response.end();
    }
  };
}

function send(
  { status, headers, cookies, body }: NodeAnswer,
  { method }: NodeRequest,
  to: NodeResponse,
): void {
  to.statusCode = status;
  for (const [name, value] of headers) to.setHeader(name, value);
  if (cookies.length > 0) to.setHeader('set-cookie', cookies);
  if (method === 'HEAD') to.end();
  else to.end(body);
}

interface NodeAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly cookies: readonly string[];
  readonly body: Uint8Array;
}

/** It never rejects: see `toNode`. */
async function answerOf(
  dashboard: Dashboard,
  request: NodeRequest,
  signal: AbortSignal,
): Promise<NodeAnswer> {
  try {
    const answer = await dashboard(await toRequest(request, signal));
    return {
      status: answer.status,
      headers: [...answer.headers].filter(([name]) => name !== 'set-cookie'),
      cookies: answer.headers.getSetCookie(),
      body: new Uint8Array(await answer.arrayBuffer()),
    };
  } catch (error) {
    if (!(error instanceof RefusedRequestError))
      console.error('drizzle-queue dashboard:', describeThrown(error));
    const status = error instanceof RefusedRequestError ? error.status : 500;
    return { status, headers: [], cookies: [], body: new Uint8Array() };
  }
}

class RefusedRequestError extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`refused with ${status}`);
    this.status = status;
  }
}

/** What the Fetch API has no request for. Scanners send `TRACE`. */
const NO_FETCH = ['CONNECT', 'TRACE', 'TRACK'];

async function toRequest(request: NodeRequest, signal: AbortSignal): Promise<Request> {
  const { method = 'GET', headers: given, socket } = request;
  if (NO_FETCH.includes(method)) throw new RefusedRequestError(405);
  const headers = new Headers();
  for (const [name, value] of Object.entries(given)) {
    // Names such as `:authority` are HTTP/2's own.
    if (value === undefined || name.startsWith(':')) continue;
    for (const each of typeof value === 'string' ? [value] : value) headers.append(name, each);
  }
  const { ':authority': authority } = given;
  // Over HTTP/2 browsers send no `host`.
  if (typeof authority === 'string' && !headers.has('host')) headers.set('host', authority);
  const path = request.originalUrl ?? request.url ?? '/';
  const protocol = Reflect.get(socket, 'encrypted') === true ? 'https' : 'http';
  let url: URL;
  try {
    // A path such as `//other` is one, not a host.
    url = new URL(`${protocol}://${headers.get('host') ?? 'localhost'}${path.startsWith('/') ? path : '/'}`);
  } catch {
    throw new RefusedRequestError(400);
  }
  // A `Host` such as `user@example.com` is not a host, and the Fetch API refuses credentials in addresses.
  if (url.username !== '' || url.password !== '') throw new RefusedRequestError(400);
  if (method === 'GET' || method === 'HEAD') return new Request(url, { method, headers, signal });
  const body = await bodyOf(request);
  // A parser may have inflated it; what counts is how long it is now.
  headers.delete('content-length');
  return new Request(url, { method, headers, body, signal });
}

async function bodyOf(request: NodeRequest): Promise<string> {
  const { body } = request;
  if (typeof body === 'string') return body;
  if (typeof body === 'object' && body !== null && !(body instanceof Uint8Array)) {
    const fields = new URLSearchParams();
    for (const [name, value] of Object.entries(body)) if (typeof value === 'string') fields.set(name, value);
    if (fields.size > 0 || request.readableEnded) return String(fields);
  }
  if (body instanceof Uint8Array) return new TextDecoder().decode(body);
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const chunk of request) {
      text += typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true });
      if (text.length > MAX_BODY) throw new RefusedRequestError(413);
    }
  } catch (error) {
    // The browser has gone in the middle of a form; nothing is wrong with the dashboard.
    throw isCutOff(error) ? new RefusedRequestError(400) : error;
  }
  return text;
}

/** Whether the other end closed the connection before its request had ended. */
function isCutOff(error: unknown): boolean {
  const code: unknown = Reflect.get(Object(error), 'code');
  return code === 'ECONNRESET' || code === 'ERR_STREAM_PREMATURE_CLOSE';
}

import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, request, Server } from 'node:http';
import { connect, createServer as createHttp2Server, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { createQueue } from 'drizzle-queue';
import { createDashboard, type NodeHandler, toNode } from 'drizzle-queue/dashboard';
import { Hono } from 'hono';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { clearTables } from '../queries/support/jobs.ts';
import { emptyTables } from '../support/empty-tables.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();
const queue = createQueue();
const servers: (Server | Http2Server)[] = [];

beforeEach(async () => {
  await clearTables(database.client);
  await emptyTables(database.client, 'queue_pauses');
});
afterEach(() => {
  for (const server of servers.splice(0)) {
    if (server instanceof Server) server.closeAllConnections();
    server.close();
  }
});

function dashboardAt(basePath: string) {
  return createDashboard({ db: database.db, queue, basePath, authorize: () => 'write', onAction: () => {} });
}

async function listening(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // It listens on a port.
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function listeningOverHttp2(listener: NodeHandler): Promise<string> {
  const server = createHttp2Server((request, response) => void listener(request, response));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function getOverHttp2(origin: string, path: string, headers: Record<string, string> = {}) {
  const client = connect(origin);
  try {
    const stream = client.request({ ':path': path, ...headers }).end();
    const [answered] = await once(stream, 'response');
    const chunks: Uint8Array[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    return { status: answered[':status'], text: Buffer.concat(chunks).toString() };
  } finally {
    client.close();
  }
}

async function textOf(message: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of message) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** How servers mount it, as docs/dashboard.md says; those that are not installed here by what they do to a request. */
const mounts: Readonly<Record<string, () => Promise<string>>> = {
  'Hono, its own routes': async () => {
    const app = new Hono();
    const dashboard = dashboardAt('/admin/queue');
    app.all('/admin/queue', (c) => dashboard(c.req.raw));
    app.all('/admin/queue/*', (c) => dashboard(c.req.raw));
    return await listening(getRequestListener(app.fetch));
  },
  'Hono, which takes the base off': async () => {
    const app = new Hono();
    app.mount('/admin/queue', dashboardAt('/admin/queue'));
    return await listening(getRequestListener(app.fetch));
  },
  'node:http': async () => await listening(toNode(dashboardAt('/admin/queue'))),
  'a router that shortens the URL, behind a parser of forms': async () => {
    const handler = toNode(dashboardAt('/admin/queue'));
    return await listening(async (request, response) => {
      const { url: originalUrl = '/' } = request;
      const body = Object.fromEntries(new URLSearchParams(await textOf(request)));
      await handler(
        Object.assign(request, { originalUrl, url: originalUrl.slice('/admin/queue'.length) || '/', body }),
        response,
      );
    });
  },
};

describe.each(Object.entries(mounts))('mounted in %s', (_, mount) => {
  test('its pages, assets and forms work', async () => {
    const origin = await mount();
    const answer = await fetch(`${origin}/admin/queue`);
    const html = await answer.text();
    expect(answer.status).toBe(200);
    expect(html).toContain('<h1>Overview</h1>');
    const [, script = ''] = /src="(\/admin\/queue\/assets\/app[^"]+)"/.exec(html) ?? [];
    const asset = await fetch(`${origin}${script}`);
    expect([asset.status, asset.headers.get('content-type')]).toEqual([
      200,
      'text/javascript; charset=utf-8',
    ]);
    expect(await asset.text()).toContain('data-tick');
    const form = {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', origin },
      body: String(new URLSearchParams({ queue: 'ü & b', back: '/queues?x=1' })),
      redirect: 'manual',
    } as const;
    const sent = await fetch(`${origin}/admin/queue/actions/pause`, form);
    expect([sent.status, sent.headers.get('location')]).toEqual([303, '/admin/queue/queues?x=1&done=paused']);
    expect(await queue.paused(database.db)).toMatchObject([{ queue: 'ü & b' }]);
    const forged = { ...form, headers: { ...form.headers, origin: 'http://evil.test' } };
    expect((await fetch(`${origin}/admin/queue/actions/pause`, forged)).status).toBe(403);
    const head = await fetch(`${origin}/admin/queue/jobs`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });
});

describe('toNode', () => {
  test('a path that looks like a host is a path', async () => {
    const asked: string[] = [];
    const origin = await listening(
      toNode(async (request) => {
        asked.push(request.url);
        return new Response('ok');
      }),
    );
    for (const path of ['//evil.test/x', '/%', '/\\evil.test']) {
      await new Promise<void>((resolve, reject) => {
        const { hostname, port } = new URL(origin);
        request({ hostname, port, path }, (answer) => answer.resume().on('end', resolve))
          .on('error', reject)
          .end();
      });
    }
    expect(asked.every((url) => url.startsWith(`${origin}/`))).toBe(true);
    expect(asked).toHaveLength(3);
  });

  test('a host that is none, and a body that is too large, are refused', async () => {
    const origin = await listening(toNode(dashboardAt('/')));
    const { hostname, port } = new URL(origin);
    const status = (headers: Record<string, string>, body?: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        const sent = request(
          { hostname, port, method: body === undefined ? 'GET' : 'POST', path: '/actions/pause', headers },
          (answer) => {
            answer.resume();
            resolve(answer.statusCode);
          },
        );
        sent.on('error', reject);
        sent.end(body);
      });
    expect(await status({ host: 'a b' })).toBe(400);
    expect(await status({ host: `user:secret@${hostname}` })).toBe(400);
    expect(await status({ host: hostname }, 'x'.repeat(1_100_000))).toBe(413);
  });

  test('a method that no Request can have is refused, and nothing is logged', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    try {
      const { hostname, port } = new URL(await listening(toNode(dashboardAt('/'))));
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const sent = request({ hostname, port, method: 'TRACE' }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        sent.on('error', reject);
        sent.end();
      });
      expect(status).toBe(405);
      expect(printed).not.toHaveBeenCalled();
    } finally {
      printed.mockRestore();
    }
  });

  test('an upload that is cut off is not logged', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    try {
      const handled = later();
      const answer = toNode(dashboardAt('/'));
      const listener: RequestListener = (asked, response) => {
        void answer(asked, response).then(handled.resolve);
      };
      const { hostname, port } = new URL(await listening(listener));
      const headers = { 'content-length': '1000' };
      const sent = request({ hostname, port, method: 'POST', path: '/actions/pause', headers });
      sent.on('error', () => {});
      const begun = new Promise((resolve) => servers[0]?.once('request', resolve));
      sent.write('queue=');
      await begun;
      sent.destroy();
      await handled.promise;
      expect(printed).not.toHaveBeenCalled();
    } finally {
      printed.mockRestore();
    }
  });

  test('a response that cannot be read is a 500, and the process goes on', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    try {
      const used = new Response('once');
      const origin = await listening(toNode(async () => used));
      expect((await fetch(origin)).status).toBe(200);
      expect((await fetch(origin)).status).toBe(500);
      expect((await fetch(origin)).status).toBe(500);
      expect(unhandled).not.toHaveBeenCalled();
    } finally {
      process.off('unhandledRejection', unhandled);
      printed.mockRestore();
    }
  });

  test('an answer that another middleware has begun is left alone', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    try {
      const handler = toNode(dashboardAt('/'));
      const origin = await listening(async (asked, response) => {
        const handled = handler(asked, response);
        // As one that limits the time of each answer.
        response.writeHead(503).flushHeaders();
        const outcome = await handled.catch((error: unknown) => error);
        response.end(String(outcome));
      });
      const answer = await fetch(origin);
      expect([answer.status, await answer.text()]).toEqual([503, 'undefined']);
      expect(printed).not.toHaveBeenCalled();
    } finally {
      printed.mockRestore();
    }
  });

  test('over HTTP/2 the host is known', async () => {
    const dashboard = (hosts: string[]) =>
      createDashboard({ db: database.db, queue, authorize: () => 'write', hosts });
    for (const [hosts, status] of [
      [['shop.test:8443'], 200],
      [['other.test'], 403],
    ] as const) {
      const origin = await listeningOverHttp2(toNode(dashboard([...hosts])));
      const answer = await getOverHttp2(origin, '/jobs', { ':authority': 'shop.test:8443' });
      expect(answer.status).toBe(status);
    }
    const form = { ':method': 'POST', 'content-type': 'application/x-www-form-urlencoded' };
    const origin = await listeningOverHttp2(toNode(dashboard(['shop.test'])));
    for (const [from, status] of [
      ['http://shop.test', 404],
      ['http://localhost', 403],
    ] as const) {
      const headers = { ...form, ':authority': 'shop.test', origin: from };
      expect((await getOverHttp2(origin, '/actions/pause', headers)).status).toBe(status);
    }
  });

  test('a header that cannot be sent is a 500, and the process goes on', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    const unhandled = vi.fn();
    process.on('unhandledRejection', unhandled);
    try {
      // As a login that the app has fetched from a server of HTTP/1.
      const login = new Response('Please log in', { headers: { 'keep-alive': 'timeout=5' } });
      const origin = await listeningOverHttp2(toNode(async () => login));
      expect(await getOverHttp2(origin, '/')).toEqual({ status: 500, text: '' });
      expect(printed).toHaveBeenCalledOnce();
      expect(unhandled).not.toHaveBeenCalled();
    } finally {
      process.off('unhandledRejection', unhandled);
      printed.mockRestore();
    }
  });

  test('a response that authorize shares is sent to each stranger', async () => {
    const shared = new Response('Please log in', { status: 401 });
    const authorize = () => shared;
    const origin = await listening(toNode(createDashboard({ db: database.db, queue, authorize })));
    for (const _ of [1, 2, 3]) {
      const answer = await fetch(`${origin}/jobs`);
      expect([answer.status, await answer.text()]).toEqual([401, 'Please log in']);
    }
  });

  test('what a dashboard throws is a 500, and the signal is aborted when the browser goes', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    const failing = await listening(toNode(() => Promise.reject(new Error('no'))));
    expect((await fetch(failing)).status).toBe(500);
    expect(printed).toHaveBeenCalledOnce();
    printed.mockRestore();
    let gone: Promise<unknown> | undefined;
    const asked = later();
    const slow = await listening(
      toNode(async ({ signal }) => {
        gone = new Promise((resolve) => signal.addEventListener('abort', resolve));
        asked.resolve(undefined);
        await gone;
        return new Response('late');
      }),
    );
    const leaving = new AbortController();
    const answer = fetch(slow, { signal: leaving.signal }).catch(() => 'left');
    await asked.promise;
    leaving.abort();
    expect(await answer).toBe('left');
    await gone;
  });
});

/** A promise and what resolves it, which Node.js 20 does not make. */
function later() {
  let resolve: (value: unknown) => void = () => {};
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

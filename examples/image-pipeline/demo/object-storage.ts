/** An object storage in memory: PUT, GET and DELETE of keys, and a list of those with a prefix. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

export interface ObjectStorage {
  readonly url: string;
  readonly objects: ReadonlyMap<string, Buffer>;
  close(): void;
}

/** What it does with a PUT: `hang` gives no answer. */
export type PutPlan = (key: string) => 'take' | 'refuse' | 'hang';

export async function openObjectStorage(plan: PutPlan): Promise<ObjectStorage> {
  const objects = new Map<string, Buffer>();
  const server = createServer((request, response) => {
    answer(request, response, plan, objects).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The storage has no port');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${address.port}`, objects, close };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  plan: PutPlan,
  objects: Map<string, Buffer>,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://storage');
  const key = url.pathname.slice(1);
  const body = await buffer(request);
  const prefix = url.searchParams.get('prefix');
  if (request.method === 'PUT') {
    const planned = plan(key);
    if (planned === 'hang') return;
    if (planned === 'refuse') return void response.writeHead(503).end();
    objects.set(key, body);
  } else if (request.method === 'DELETE') {
    objects.delete(key);
  } else if (prefix !== null) {
    return void response.end(JSON.stringify([...objects.keys()].filter((one) => one.startsWith(prefix))));
  } else {
    const object = objects.get(key);
    return void response.writeHead(object === undefined ? 404 : 200).end(object);
  }
  response.end();
}

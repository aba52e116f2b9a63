import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import pg from 'pg';
import { type WebSocket, WebSocketServer } from 'ws';

/** One query, as Neon's driver sends it over HTTP. */
interface HttpQuery {
  readonly query: string;
  readonly params: readonly (string | null)[];
}

/** What stands for Neon's side of its drivers, before a plain PostgreSQL. */
export interface NeonEndpoint {
  /** `host:port`. */
  readonly address: string;
  close(): Promise<void>;
}

/**
 * Neon's side of its two drivers, on this machine: a WebSocket carries the bytes of a connection to the server that its address names;
 * a `POST /sql` carries a query, or a batch of them as one transaction, in JSON.
 */
export async function startNeonEndpoint(): Promise<NeonEndpoint> {
  const pools = new Map<string, pg.Pool>();
  const server = createServer((request, response) => {
    answer(pools, request, response).catch((error: unknown) => {
      response.statusCode = 500;
      response.end(JSON.stringify({ message: String(error) }));
    });
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket, request) => carry(socket, request.url ?? ''));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A server that listens on a port has an address of this form.
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    async close() {
      for (const socket of sockets.clients) socket.terminate();
      sockets.close();
      server.closeAllConnections();
      server.close();
      await Promise.all([...pools.values()].map((pool) => pool.end()));
    },
  };
}

/** The bytes of one connection, in both directions, until one side ends it. */
function carry(socket: WebSocket, path: string): void {
  const address = new URL(path, 'ws://endpoint').searchParams.get('address') ?? '';
  const [host = '', port = ''] = address.split(':');
  const connection = connect({ host, port: Number(port), noDelay: true });
  socket.on('message', (data: Buffer) => connection.write(data));
  socket.on('close', () => connection.destroy());
  socket.on('error', () => connection.destroy());
  connection.on('data', (data) => socket.send(data));
  connection.on('close', () => socket.close());
  connection.on('error', () => socket.terminate());
}

async function answer(
  pools: Map<string, pg.Pool>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = String(request.headers['neon-connection-string']);
  const pool = pools.get(url) ?? new pg.Pool({ connectionString: url, max: 6 });
  if (!pools.has(url)) {
    pools.set(url, pool);
    pool.on('error', () => undefined);
  }
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  const body: HttpQuery | { readonly queries: readonly HttpQuery[] } = JSON.parse(text);
  const client = await pool.connect();
  try {
    const result =
      'queries' in body ? { results: await runBatch(client, body.queries) } : await run(client, body);
    response.end(JSON.stringify(result));
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    response.statusCode = 400;
    response.end(JSON.stringify({ ...error, message: error.message }));
  } finally {
    client.release();
  }
}

async function runBatch(client: pg.PoolClient, queries: readonly HttpQuery[]): Promise<unknown[]> {
  await client.query('begin');
  try {
    const results: unknown[] = [];
    for (const query of queries) results.push(await run(client, query));
    await client.query('commit');
    return results;
  } catch (error) {
    await client.query('rollback');
    throw error;
  }
}

/** Values go as the text that Postgres writes: the driver reads them, by their types. */
async function run(client: pg.PoolClient, { query, params }: HttpQuery): Promise<unknown> {
  const { fields, rows, rowCount, command } = await client.query({
    text: query,
    values: [...params],
    rowMode: 'array',
    types: { getTypeParser: () => (value: string) => value },
  });
  return { fields, rows, rowCount, command, rowAsArray: true };
}

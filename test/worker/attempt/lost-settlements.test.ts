import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { drizzle } from 'drizzle-orm/node-postgres';
import { createQueue, createWorker, defineJob, handle, runNext, type WorkerEvents } from 'drizzle-queue';
import pg from 'pg';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { emptyTables } from '../../support/empty-tables.ts';
import { useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

const database = useTestDatabase();
const queue = createQueue();
const work = defineJob('work', { maxAttempts: 1 });

/** What ends an attempt, in a worker and in `runNext`. */
const SETTLEMENT = /insert into "queue_results"/;

beforeEach(async () => {
  await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
});

/** A pooler in front of the database, on a Unix socket as that of Cloud SQL. */
class Pooler {
  readonly #server: Server;
  readonly #clients = new Set<Socket>();
  /** Answers the next settlement with this, and closes its connection, so that the database never gets it. */
  lastWords: Buffer | undefined;

  private constructor(url: URL) {
    this.#server = createServer((client) => {
      const server = connect(Number(url.port), url.hostname);
      this.#clients.add(client);
      for (const socket of [client, server]) socket.on('error', () => undefined);
      client.on('close', () => server.destroy()).on('data', (bytes) => this.#pass(bytes, client, server));
      server.on('close', () => client.destroy()).on('data', (bytes) => client.write(bytes));
    });
  }

  static async listen(url: URL, path: string): Promise<Pooler> {
    const pooler = new Pooler(url);
    await new Promise<void>((resolve) => pooler.#server.listen(path, resolve));
    return pooler;
  }

  /** At once: who writes in the same turn writes to a connection whose end it has not read yet. */
  cut(): void {
    for (const client of this.#clients) client.destroy();
    this.#clients.clear();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #pass(bytes: Buffer, client: Socket, server: Socket): void {
    if (this.lastWords === undefined || !SETTLEMENT.test(bytes.toString('latin1'))) {
      server.write(bytes);
      return;
    }
    client.end(this.lastWords);
    this.lastWords = undefined;
  }
}

/** An error in the protocol, a length and fields, as Supavisor sends it: without the field V. */
function errorResponse(severity: string, code: string, message: string): Buffer {
  const fields = Buffer.from(`S${severity}\0C${code}\0M${message}\0\0`);
  const head = Buffer.from('E\0\0\0\0');
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

/** @param onSettlement called right before the first settlement is sent */
async function throughPooler(onSettlement: (pooler: Pooler) => void) {
  const directory = await mkdtemp(join(tmpdir(), 'pooler-'));
  const url = new URL(database.url);
  const pooler = await Pooler.listen(url, join(directory, '.s.PGSQL.5432'));
  const { username: user, password } = url;
  const name = url.pathname.slice(1);
  const pool = new pg.Pool({ host: directory, port: 5432, user, password, database: name, max: 4 });
  pool.on('error', () => undefined);
  let isFirst = true;
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
    const query = client.query;
    client.query = (...sent: unknown[]) => {
      const text = typeof sent[0] === 'string' ? sent[0] : String(Reflect.get(Object(sent[0]), 'text'));
      if (isFirst && SETTLEMENT.test(text)) {
        isFirst = false;
        onSettlement(pooler);
      }
      return Reflect.apply(query, client, sent);
    };
  });
  onTestFinished(async () => {
    await pool.end();
    await pooler.close();
    await rm(directory, { recursive: true });
  });
  return drizzle({ client: pool });
}

const breaks: readonly [string, string, (pooler: Pooler) => void][] = [
  ['is closed before it is written to', 'EPIPE', (pooler) => pooler.cut()],
  [
    'is closed by a pooler with an error of the class XX',
    'Database connection closed',
    (pooler) => {
      pooler.lastWords = errorResponse('FATAL', 'XX000', 'Database connection closed');
    },
  ],
];

describe.each(breaks)('where the connection of a settlement %s', (_, reason, onSettlement) => {
  test('the worker writes it again, and the job is completed', async () => {
    const db = await throughPooler(onSettlement);
    const errors: WorkerEvents['error'][0][] = [];
    const worker = createWorker(db, { queue, handlers: [handle(work, () => 'done')], listen: false });
    worker.on('error', (error) => errors.push(error));
    const { id } = await queue.enqueue(database.db, work);
    await worker.start();
    await until(async () => /completed|discarded/.test(String((await queue.find(database.db, id))?.state)));
    await worker.stop();
    expect(await queue.find(database.db, id)).toMatchObject({
      state: 'completed',
      output: 'done',
      errors: [],
    });
    const settling = errors.find(({ during }) => during === "settling 1 job of 'default'");
    expect(reasonsOf(settling?.error)).toContain(reason);
  });

  test('runNext throws, and the job stays due with its attempt', async () => {
    const db = await throughPooler(onSettlement);
    const { id } = await queue.enqueue(database.db, work);
    const ran = runNext(db, { queue, handlers: [handle(work, () => 'done')] });
    await expect(ran.catch((error: unknown) => Promise.reject(new Error(reasonsOf(error))))).rejects.toThrow(
      reason,
    );
    expect(await queue.find(database.db, id)).toMatchObject({ state: 'due', attempt: 0, errors: [] });
  });
});

function reasonsOf(error: unknown): string {
  const messages: string[] = [];
  for (let at = error; at instanceof Error; at = at.cause) messages.push(at.message);
  return messages.join('\n');
}

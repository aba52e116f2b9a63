import { createServer, type Socket } from 'node:net';
import { drizzle as drizzleNode } from 'drizzle-orm/node-postgres';
import { drizzle } from 'drizzle-orm/postgres-js';
import { createQueue, createWorker, type Database, defineJob, handle } from 'drizzle-queue';
import pg from 'pg';
import postgres from 'postgres';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isLoss, isRefusal } from '../../src/core/sql/is-loss.ts';
import { isAboutTheServer } from '../../src/core/worker/base/refusal.ts';

const MESSAGE = 'Max client connections reached';

/** A pooler that answers each connection with an error as Supavisor sends it: without the field V. */
async function refusing(): Promise<number> {
  const fields = Buffer.from(`SFATAL\0CXX000\0M${MESSAGE}\0\0`);
  const head = Buffer.from('E\0\0\0\0');
  head.writeInt32BE(fields.length + 4, 1);
  const clients = new Set<Socket>();
  const server = createServer((client) => {
    clients.add(client.on('error', () => undefined));
    client.once('data', () => client.end(Buffer.concat([head, fields])));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const client of clients) client.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('It listens on no port');
  return address.port;
}

function nodePostgres(connectionString: string): Database {
  const pool = new pg.Pool({ connectionString });
  onTestFinished(() => pool.end());
  return drizzleNode({ client: pool });
}

function postgresJs(url: string): Database {
  const client = postgres(url, { backoff: () => 0 });
  onTestFinished(() => client.end({ timeout: 1 }));
  return drizzle({ client });
}

describe.each([
  ['node-postgres', nodePostgres],
  ['postgres.js', postgresJs],
])('a connection of %s that a pooler refuses with an error of the class XX', (_, open) => {
  test('is a server that does not serve, and not a refused row', async () => {
    const db = open(`postgres://me:secret@127.0.0.1:${await refusing()}/app`);
    const error = await Promise.resolve(db.execute('select 1')).catch((thrown: unknown) => thrown);
    expect({
      isAboutTheServer: isAboutTheServer(error),
      isLoss: isLoss(error),
      isRefusal: isRefusal(error),
    }).toEqual({ isAboutTheServer: true, isLoss: true, isRefusal: true });
  });

  test('is named where it stops the start of a worker', async () => {
    const db = open(`postgres://me:secret@127.0.0.1:${await refusing()}/app`);
    const handlers = [handle(defineJob('work'), () => undefined)];
    const worker = createWorker(db, { queue: createQueue(), handlers, listen: false });
    await expect(worker.start()).rejects.toThrow(`The worker cannot reach its database: ${MESSAGE}`);
  });
});

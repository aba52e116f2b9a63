import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createContext, runInContext } from 'node:vm';
import { PGlite } from '@electric-sql/pglite';
import { expect, inject, test } from 'vitest';
import type {} from './global-setup.ts';
import { run } from './support/run-program.ts';
import { tools } from './support/tools.ts';

/** A page that enqueues, rolls back, works, and stops a handler that goes on for ever. */
const PAGE = `
  import { drizzle } from 'drizzle-orm/pglite';
  import { createQueue, createWorker, defineJob, handle, unvalidated } from 'drizzle-queue';

  export async function visit(client) {
    const db = drizzle(client);
    const queue = createQueue();
    const greet = defineJob('greet', { payload: unvalidated() });
    const endless = defineJob('endless');
    const { id } = await db.transaction((tx) => queue.enqueue(tx, greet, { name: 'Ada' }));
    await db
      .transaction(async (tx) => {
        await queue.enqueue(tx, greet, { name: 'Bob' });
        throw new Error('no');
      })
      .catch(() => undefined);
    let begun;
    const running = new Promise((resolve) => (begun = resolve));
    const worker = createWorker(db, {
      queue,
      handlers: [
        handle(greet, ({ payload }) => 'Hello ' + payload.name),
        handle(endless, () => {
          begun();
          return new Promise(() => {});
        }),
      ],
      shutdownTimeoutMs: 0,
      log: false,
    });
    const errors = [];
    worker.on('error', ({ error }) => errors.push(String(error)));
    await worker.start();
    const { output } = await queue.waitFor(db, greet, id);
    const last = await queue.enqueue(db, endless);
    await running;
    await worker.stop();
    const { state, attempt } = await queue.find(db, endless, last.id);
    return JSON.stringify({ output, state, attempt, errors });
  }`;

/** All that a page gets here: what every browser has, and nothing of Node.js. */
const WEB = {
  AbortController,
  AbortSignal,
  clearTimeout,
  console,
  crypto,
  DOMException,
  Event,
  EventTarget,
  MessageChannel,
  performance,
  queueMicrotask,
  // A browser's timers are numbers.
  setTimeout: (task: () => void, ms?: number) => Number(setTimeout(task, ms)),
  structuredClone,
  TextDecoder,
  TextEncoder,
  URL,
};

test('a worker, bundled for browsers without stand-ins for anything of Node.js, runs there', async () => {
  const { projects } = inject('packed');
  const folder = await mkdtemp(join(projects['0.45'], 'page-'));
  const client = await PGlite.create();
  try {
    await client.exec(await readFile('drizzle/0000_queue_tables.sql', 'utf8'));
    await writeFile(join(folder, 'page.js'), PAGE);
    // The database is another program, as PostgreSQL always is: here PGlite, beside the page.
    const pglite = 'export const types = { DATE: 1082, TIMESTAMP: 1114, TIMESTAMPTZ: 1184, INTERVAL: 1186 };';
    await writeFile(join(folder, 'pglite.js'), `${pglite}\nexport class PGlite {}`);
    await run(
      tools.esbuild,
      [
        ...['page.js', '--bundle', '--platform=browser', '--format=iife', '--global-name=page'],
        ...['--alias:@electric-sql/pglite=./pglite.js', '--log-level=warning', '--outfile=bundle.js'],
      ],
      { cwd: folder },
    );
    const context = createContext({ ...WEB, client });
    runInContext(await readFile(join(folder, 'bundle.js'), 'utf8'), context);
    const said: string = await runInContext('page.visit(client)', context);
    expect(JSON.parse(said)).toEqual({ output: 'Hello Ada', state: 'due', attempt: 0, errors: [] });
    const { rows } = await client.query('select count(*)::int as n from queue_results');
    expect(rows).toEqual([{ n: 1 }]);
  } finally {
    await client.close();
    await rm(folder, { recursive: true, force: true });
  }
});

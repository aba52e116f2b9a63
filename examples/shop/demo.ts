/**
 * The shop in action: `npm run demo`. It starts PostgreSQL, migrates, starts two workers, opens the shop, has orders
 * placed, waits until every job has ended, and checks the numbers. Exits with 1 if a single one does not add up. With
 * `--dashboard` the dashboard stays open until Ctrl-C.
 */
import { once } from 'node:events';
import { constants } from 'node:os';
import { setInterval } from 'node:timers/promises';
import { asc, sql } from 'drizzle-orm';
import { databaseServer } from '../../test/support/database-server.ts';
import { createDatabase } from '../../test/support/databases.ts';
import { connect, type ShopDatabase } from './database.ts';
import { checksOf } from './demo/check.ts';
import { type PlacedOrder, placeOrders } from './demo/customers.ts';
import { readEvidence } from './demo/evidence.ts';
import { migrate } from './demo/migrate.ts';
import { openDashboard } from './demo/open-dashboard.ts';
import { openShop } from './demo/open-shop.ts';
import { openingStock, planOrders, skus } from './demo/plan.ts';
import { watchUntilDone } from './demo/progress.ts';
import { printChecks, printReport, printVerdict } from './demo/report.ts';
import { say, styled } from './demo/terminal.ts';
import { startWorkerProcess } from './demo/worker-processes.ts';
import { products, queueWorkers } from './schema.ts';

const ORDERS = 300;
const CUSTOMERS = 6;
const WORKERS = 2;
const DEADLINE_MS = 60_000;
const keepsDashboard = process.argv.includes('--dashboard');

/** Ends the demo early: whatever waits heeds its signal. */
const ending = new AbortController();

/** Ends what the demo has started, the last first, however the demo itself ends. */
const cleanups: (() => Promise<unknown>)[] = [];

for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  // Once: a second Ctrl-C ends this process at once, and PostgreSQL and the workers notice that by themselves.
  process.once(name, () => {
    process.exitCode = 128 + constants.signals[name];
    ending.abort(new Error(`Stopped by ${name}; cleaning up`));
  });
}
const deadline = setTimeout(() => {
  ending.abort(new Error(`Not done within ${DEADLINE_MS} ms`));
}, DEADLINE_MS).unref();

try {
  if (!(await demo(ending.signal))) process.exitCode = 1;
} catch (error) {
  process.exitCode ??= 1;
  if (ending.signal.aborted) say(styled('red', ending.signal.reason.message));
  else console.error(error);
} finally {
  ending.abort(new Error('The demo is over'));
  for (const cleanup of cleanups.reverse()) {
    await cleanup().catch((error: unknown) => {
      process.exitCode ||= 1;
      console.error(error);
    });
  }
}

/** Returns whether every number adds up. */
async function demo(signal: AbortSignal): Promise<boolean> {
  console.log(`${styled('bold', 'A small shop: orders over HTTP, receipts and parcels by two workers.')}\n`);

  const server = await databaseServer();
  cleanups.push(server.stop);
  const database = await createDatabase(server.url);
  cleanups.push(database.drop);
  const { db, close } = connect({ url: database.url });
  cleanups.push(close);
  const [settings] = await db.execute<{ server_version: string }>(sql`show server_version`);
  const origin = process.env.DATABASE_URL ? 'the server of DATABASE_URL' : 'embedded, from npm';
  say(`PostgreSQL ${settings?.server_version} is up (${origin})`);

  signal.throwIfAborted();
  await migrate(database.url, signal);
  await db.insert(products).values(skus.map((sku) => ({ sku, stock: openingStock })));
  say(
    'drizzle-kit migrate has created orders, products, queue_jobs, queue_results, queue_workers, queue_pauses, ' +
      'queue_metrics',
  );

  const workers = Array.from({ length: WORKERS }, () =>
    startWorkerProcess(database.url, (crash) => ending.abort(crash)),
  );
  const stopWorkers = () => Promise.all(workers.map(({ stop }) => stop()));
  cleanups.push(stopWorkers);
  const workerNames = await waitForWorkers(db, signal);
  say(`${WORKERS} worker processes wait for jobs: ${workers.map(({ pid }) => `pid ${pid}`).join(', ')}`);

  const shop = await openShop(db);
  cleanups.push(shop.close);
  say(`The shop is open on ${shop.url}, and ${CUSTOMERS} customers place ${ORDERS} orders`);
  const dashboard = await openDashboard(db);
  cleanups.push(dashboard.close);
  say(
    `Its dashboard is on ${dashboard.url}${keepsDashboard ? '' : ' meanwhile (--dashboard keeps it open)'}`,
  );
  const plan = planOrders(ORDERS);
  const placed: PlacedOrder[] = [];
  await Promise.all([
    placeOrders(shop.url, plan, { customers: CUSTOMERS, signal, onAnswer: (order) => placed.push(order) }),
    watchUntilDone(db, { plan, placed, signal }),
  ]);
  const declined = placed.filter(({ status }) => status === 402).length;
  say(`All orders are placed (${declined} of them declined and rolled back), and all jobs have ended`);

  const exitCodes = await stopWorkers();
  say(`The workers were sent SIGTERM and have stopped with exit codes ${exitCodes.join(' and ')}`);

  const evidence = await readEvidence(db);
  const checks = checksOf(placed, evidence, exitCodes);
  printReport(evidence, workerNames);
  printChecks(checks);
  const addsUp = printVerdict(checks, evidence, declined);
  if (keepsDashboard) {
    clearTimeout(deadline);
    say(`The dashboard stays open on ${dashboard.url} until Ctrl-C`);
    await once(signal, 'abort');
  }
  return addsUp;
}

/** Waits until the workers have registered; returns their names by id. */
async function waitForWorkers(db: ShopDatabase, signal: AbortSignal): Promise<Map<number, string>> {
  for await (const _ of setInterval(50, undefined, { signal })) {
    const registered = await db.select().from(queueWorkers).orderBy(asc(queueWorkers.id));
    if (registered.length === WORKERS) return new Map(registered.map(({ id, name }) => [id, name]));
  }
  throw new Error('The workers did not register');
}

/**
 * A shop sells while its nightly report is written by worker processes that are killed, one after the other, until none is left for
 * some nights. At the end each night has one report, and each sale is in one. A night lasts a second.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { and, asc, isNotNull, isNull, lt, sql, sum } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { databaseServer } from '../../test/support/database-server.ts';
import { createDatabase } from '../../test/support/databases.ts';
import { nightlyReport, queue } from './jobs.ts';
import { reports, sales } from './schema.ts';

const NIGHT_MS = 1_000;
const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

const server = await databaseServer();
const database = await createDatabase(server.url);
const client = postgres(database.url, { max: 5, onnotice: () => {} });
const db = drizzle({ client });
const workers = new Set<ChildProcess>();
try {
  await migrate(db, { migrationsFolder: path('drizzle') });
  const shop = new AbortController();
  const selling = sell(shop.signal);

  const [first, second] = [startWorker(), startWorker()];
  await untilReports(3);
  console.log('3 nights have their reports. The first worker is killed.');
  await kill(first);
  await untilReports(6);
  console.log('6 nights. The second worker is killed: for a while there is none.');
  await kill(second);
  await delay(4 * NIGHT_MS);
  console.log('A third worker starts, and writes the reports of the nights in between.');
  startWorker();
  await untilReports(13);

  await queue.schedules.pause(db, nightlyReport.name);
  shop.abort();
  await selling;
  for (const worker of workers) await stop(worker);
  await check();
} finally {
  for (const worker of workers) worker.kill('SIGKILL');
  await client.end();
  await database.drop();
  await server.stop();
}

/** Sells until the shop closes. */
async function sell(closed: AbortSignal): Promise<void> {
  while (!closed.aborted) {
    await db.insert(sales).values({ cents: 1 + Math.floor(Math.random() * 5_000) });
    await delay(20);
  }
}

function startWorker(): ChildProcess {
  const worker = spawn(process.execPath, ['--import', 'tsx', path('worker.ts')], {
    env: { ...process.env, DATABASE_URL: database.url },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  workers.add(worker);
  return worker;
}

async function kill(worker: ChildProcess): Promise<void> {
  worker.kill('SIGKILL');
  await once(worker, 'exit');
  workers.delete(worker);
}

async function stop(worker: ChildProcess): Promise<void> {
  worker.kill('SIGTERM');
  const [code] = await once(worker, 'exit');
  workers.delete(worker);
  if (code !== 0) throw new Error(`A worker ended with ${code}`);
}

async function untilReports(count: number): Promise<void> {
  const deadline = Date.now() + 60_000;
  while ((await db.$count(reports)) < count) {
    if (Date.now() > deadline) throw new Error(`There are not ${count} reports after a minute`);
    await delay(50);
  }
}

/** Throws when a night has no report or two, or a sale is in none. */
async function check(): Promise<void> {
  const written = await db.select().from(reports).orderBy(asc(reports.night));
  const [first, last] = [written[0]?.night.getTime() ?? 0, written.at(-1)?.night.getTime() ?? 0];
  const nights = (last - first) / NIGHT_MS + 1;
  const fired = await client<{ night: string }[]>`
    select metadata ->> 'tick' as night from queue_results where kind = 'report-sales' order by job_id`;
  const [sold] = await db
    .select({ sales: sql<number>`count(*)::int`, cents: sum(sales.cents).mapWith(Number) })
    .from(sales)
    .where(isNotNull(sales.night));
  // A sale that commits while a night's report is written is in the next one's.
  const settled = new Date(last - NIGHT_MS);
  const forgotten = await db.$count(sales, and(isNull(sales.night), lt(sales.soldAt, settled)));
  const reported = {
    sales: written.reduce((all, report) => all + report.sales, 0),
    cents: written.reduce((all, report) => all + report.cents, 0),
  };
  console.log(`${written.length} reports of ${nights} nights, ${fired.length} jobs.`);
  console.log(
    `${sold?.sales} sales of ${sold?.cents} cents; in the reports ${reported.sales} of ${reported.cents}.`,
  );
  const right =
    written.length === nights &&
    fired.length === nights &&
    new Set(fired.map(({ night }) => night)).size === nights &&
    forgotten === 0 &&
    sold?.sales === reported.sales &&
    sold.cents === reported.cents;
  if (!right) throw new Error('It does not add up.');
  console.log('Every night has its one report, and every sale is in one.');
}

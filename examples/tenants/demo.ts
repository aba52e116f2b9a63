/**
 * Twenty tenants share a queue: one puts in 150 exports at once, the others two each a moment later. Accounts are booked in order
 * meanwhile, with entries that fail at first. One of the two workers is killed. At the end nobody had more than two exports running,
 * the small tenants did not wait for the large one, and every account has its entries in order.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { and, asc, count, eq, isNull, sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { databaseServer } from '../../test/support/database-server.ts';
import { createDatabase } from '../../test/support/databases.ts';
import { book, exportData, queue } from './jobs.ts';
import { entries, exportRuns, queueJobs } from './schema.ts';

const LARGE = 150;
const SMALL_TENANTS = 19;
const ACCOUNTS = 5;
const ENTRIES = 30;
const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));

const server = await databaseServer();
const database = await createDatabase(server.url);
const client = postgres(database.url, { max: 5, onnotice: () => {} });
const db = drizzle({ client });
const workers = new Set<ChildProcess>();
try {
  await migrate(db, { migrationsFolder: path('drizzle') });
  const [first] = [startWorker(), startWorker()];
  const tenants = Array.from({ length: SMALL_TENANTS }, (_, n) => `tenant-${n}`);
  await queue.enqueueMany(
    db,
    exportData,
    Array.from({ length: LARGE }, () => ({ payload: { tenant: 'large' } })),
  );
  for (let number = 1; number <= ENTRIES; number++) {
    const accounts = Array.from({ length: ACCOUNTS }, (_, n) => `account-${n}`);
    await queue.enqueueMany(
      db,
      book,
      accounts.map((account) => ({ payload: { account, number, cents: number } })),
    );
  }
  await untilRuns(10);
  console.log(`The large tenant has put in ${LARGE} exports. ${SMALL_TENANTS} small ones put in two each.`);
  await queue.enqueueMany(
    db,
    exportData,
    tenants.flatMap((tenant) => [{ payload: { tenant } }, { payload: { tenant } }]),
  );
  await untilRuns(30);
  console.log('One of the two workers is killed.');
  await kill(first);
  await untilEmpty();
  for (const worker of workers) await stop(worker);
  await check();
} finally {
  for (const worker of workers) worker.kill('SIGKILL');
  await client.end();
  await database.drop();
  await server.stop();
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
  // Its runs have ended here.
  await db
    .update(exportRuns)
    .set({ endedAt: sql`clock_timestamp()` })
    .where(and(isNull(exportRuns.endedAt), eq(exportRuns.pid, worker.pid ?? 0)));
}

async function stop(worker: ChildProcess): Promise<void> {
  worker.kill('SIGTERM');
  const [code] = await once(worker, 'exit');
  workers.delete(worker);
  if (code !== 0) throw new Error(`a worker ended with ${code}`);
}

async function untilRuns(wanted: number): Promise<void> {
  for (;;) {
    const [row] = await db.select({ runs: count() }).from(exportRuns);
    if ((row?.runs ?? 0) >= wanted) return;
    await delay(50);
  }
}

async function untilEmpty(): Promise<void> {
  for (;;) {
    const [row] = await db.select({ jobs: count() }).from(queueJobs);
    if (row?.jobs === 0) return;
    await delay(100);
  }
}

/** @throws Error unless everything adds up */
async function check(): Promise<void> {
  const runs = await db.select().from(exportRuns).orderBy(asc(exportRuns.startedAt));
  const most = new Map<string, number>();
  for (const { tenant, startedAt } of runs) {
    const atOnce = runs.filter(
      (run) => run.tenant === tenant && run.startedAt <= startedAt && (run.endedAt ?? startedAt) > startedAt,
    );
    most.set(tenant, Math.max(most.get(tenant) ?? 0, atOnce.length));
  }
  const ofLarge = runs.filter(({ tenant }) => tenant === 'large');
  const lastOfSmall = runs.findLast(({ tenant }) => tenant !== 'large');
  const behind = ofLarge.filter(({ startedAt }) => startedAt > (lastOfSmall?.startedAt ?? startedAt)).length;
  console.log(
    `${runs.length} runs of ${LARGE + 2 * SMALL_TENANTS} exports; at most ${Math.max(...most.values())} at once of a tenant.`,
  );
  console.log(`When the last small tenant's export began, ${behind} of the large one were still to begin.`);
  const booked = await db.select().from(entries).orderBy(asc(entries.account), asc(entries.id));
  const wrong = booked.filter(({ account, number, balance }, at) => {
    const before = booked[at - 1];
    const isFirst = before?.account !== account;
    return (
      number !== (isFirst ? 1 : before.number + 1) || balance !== (isFirst ? 0 : before.balance) + number
    );
  });
  console.log(`${booked.length} entries in ${ACCOUNTS} accounts, ${wrong.length} out of order.`);
  if (Math.max(...most.values()) !== 2)
    throw new Error('two exports of a tenant run at once, no more and no fewer');
  if (behind === 0) throw new Error('the small tenants waited for the large one');
  if (booked.length !== ACCOUNTS * ENTRIES || wrong.length > 0) throw new Error('the accounts are wrong');
  console.log('Nobody had more than two, nobody waited for the large one, and every account is in order.');
}

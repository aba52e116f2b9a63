/**
 * A shop sells while its nightly report is written by worker processes that are killed, one after the other, until none is left for
 * some nights. At the end each night has one report, and each sale is in one. A night lasts a second.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { and, asc, eq, isNotNull, isNull, lt, sql, sum } from 'drizzle-orm';
import { addUp, onStage, type Stage, until } from '../stage/on-stage.ts';
import { nightlyReport, queue, reportSales } from './jobs.ts';
import { queueResults, reports, sales } from './schema.ts';

const NIGHT_MS = 1_000;

await onStage(import.meta.url, async ({ db, start }) => {
  const untilReports = (count: number) =>
    until(`there are ${count} reports`, async () => (await db.$count(reports)) >= count);
  const shop = new AbortController();
  const selling = sell(db, shop.signal);

  const [first, second] = [start('worker.ts'), start('worker.ts')];
  await untilReports(3);
  console.log('3 nights have their reports. The first worker is killed.');
  await first.kill();
  await untilReports(6);
  console.log('6 nights. The second worker is killed: for a while there is none.');
  await second.kill();
  await delay(4 * NIGHT_MS);
  console.log('A third worker starts, and writes the reports of the nights in between.');
  const third = start('worker.ts');
  await untilReports(13);

  await queue.schedules.pause(db, nightlyReport.name);
  shop.abort();
  await selling;
  await third.stop();
  addUp(await numbers(db));
  console.log('Every night has its one report, and every sale is in one.');
});

/** Sells until the shop closes. */
async function sell(db: Stage['db'], closed: AbortSignal): Promise<void> {
  while (!closed.aborted) {
    await db.insert(sales).values({ cents: 1 + Math.floor(Math.random() * 5_000) });
    await delay(20);
  }
}

async function numbers(db: Stage['db']): Promise<Parameters<typeof addUp>[0]> {
  const written = await db.select().from(reports).orderBy(asc(reports.night));
  const [first, last] = [written[0]?.night.getTime() ?? 0, written.at(-1)?.night.getTime() ?? 0];
  const nights = (last - first) / NIGHT_MS + 1;
  const fired = await db
    .select({ night: sql<string>`${queueResults.metadata} ->> 'tick'` })
    .from(queueResults)
    .where(eq(queueResults.kind, reportSales.kind));
  const [sold] = await db
    .select({ sales: sql<number>`count(*)::int`, cents: sum(sales.cents).mapWith(Number) })
    .from(sales)
    .where(isNotNull(sales.night));
  // A sale that commits while a night's report is written is in the next one's.
  const settled = new Date(last - NIGHT_MS);
  return [
    ['Reports, one for each night', nights, written.length],
    ['Jobs that wrote them', nights, fired.length],
    ['… each for a night of its own', nights, new Set(fired.map(({ night }) => night)).size],
    ['Sales in the reports', sold?.sales, written.reduce((all, report) => all + report.sales, 0)],
    ['… and their cents', sold?.cents, written.reduce((all, report) => all + report.cents, 0)],
    ['Sales in no report', 0, await db.$count(sales, and(isNull(sales.night), lt(sales.soldAt, settled)))],
  ];
}

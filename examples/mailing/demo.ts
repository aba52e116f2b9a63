/**
 * Each customer gets one letter, and at the end one report is written. Every thousandth address does not
 * exist, and one of the two workers is killed in the middle. At the end each letter is recorded once, and the
 * report adds up.
 */
import { eq, sql } from 'drizzle-orm';
import { addUp, onStage, type Stage, until } from '../stage/on-stage.ts';
import { queue, reportMailing } from './jobs.ts';
import { startMailing } from './mailings.ts';
import { letters, queueResults, reports } from './schema.ts';

const LETTERS = Number(process.env.LETTERS ?? 5_000);
const UNKNOWN = Math.floor(LETTERS / 1_000);

await onStage(import.meta.url, async ({ db, start }) => {
  await addCustomers(db, LETTERS);
  const workers = [start('worker.ts'), start('worker.ts')];
  await Promise.all(workers.map((worker) => worker.message()));

  const begun = performance.now();
  const seconds = () => `${((performance.now() - begun) / 1_000).toFixed(1)} s`;
  const mailing = await startMailing(db, 'autumn');
  console.log(`${mailing.enqueued} letters and their report are enqueued after ${seconds()}.`);
  await until(
    'many letters are sent',
    async () => (await db.$count(letters)) > Math.min(LETTERS / 3, 10_000),
  );
  await workers.shift()?.kill();
  console.log(`${await db.$count(letters)} are sent after ${seconds()}, and one of two workers is killed.`);
  await queue.waitFor(db, reportMailing, mailing.lastId, { timeoutMs: 600_000 });
  console.log(`The report is written after ${seconds()}.`);
  await Promise.all(workers.map((worker) => worker.stop()));

  const flow = await queue.workflows.flow(db, mailing.id);
  const written = await db.select().from(reports);
  const [report] = written;
  const [sent] = await db
    .select({
      once: sql<number>`count(distinct ${letters.customerId})::int`,
      last: sql<boolean>`max(${letters.sentAt}) <= ${report?.writtenAt.toISOString()}::timestamptz`,
    })
    .from(letters);
  addUp([
    ['Jobs of the mailing', LETTERS, mailing.enqueued],
    ['… that have not ended', 0, flow?.pending],
    ['Letters recorded', LETTERS - UNKNOWN, await db.$count(letters)],
    ['… to different customers', LETTERS - UNKNOWN, sent?.once],
    [
      'Letters that were refused',
      UNKNOWN,
      await db.$count(queueResults, eq(queueResults.state, 'discarded')),
    ],
    ['Reports', 1, written.length],
    ['… written after the last letter', true, sent?.last],
    ['Letters in the report', LETTERS, report?.total],
    ['… that were sent', LETTERS - UNKNOWN, report?.sent],
    ['… that were not', UNKNOWN, report?.failed],
  ]);
  console.log('Each customer with a mailbox has one letter, and there is one report.');
});

/** The last of each thousand has no mailbox. */
async function addCustomers(db: Stage['db'], count: number): Promise<void> {
  await db.execute(sql`
    insert into customers (email)
    select 'customer-' || n || case when n % 1000 = 0 then '@void.example' else '@mail.example' end
    from generate_series(1, ${count}::int) n`);
}

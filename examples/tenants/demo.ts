/**
 * Twenty tenants share a queue: one puts in 150 exports at once, the others two each a moment later. Accounts are booked in order
 * meanwhile, with entries that fail at first. One of the two workers is killed. At the end nobody had more than two exports running,
 * the small tenants did not wait for the large one, and every account has its entries in order.
 */
import { and, asc, eq, isNull, sql } from 'drizzle-orm';
import { addUp, onStage, type Stage, until } from '../stage/on-stage.ts';
import { book, exportData, queue } from './jobs.ts';
import { entries, exportRuns, queueJobs } from './schema.ts';

const LARGE = 150;
const SMALL_TENANTS = 19;
const ACCOUNTS = 5;
const ENTRIES = 30;

await onStage(import.meta.url, async ({ db, start }) => {
  const untilRuns = (wanted: number) =>
    until(`${wanted} exports have begun`, async () => (await db.$count(exportRuns)) >= wanted);
  const [first, second] = [start('worker.ts'), start('worker.ts')];
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
  const tenants = Array.from({ length: SMALL_TENANTS }, (_, n) => `tenant-${n}`);
  await queue.enqueueMany(
    db,
    exportData,
    tenants.flatMap((tenant) => [{ payload: { tenant } }, { payload: { tenant } }]),
  );
  await untilRuns(30);
  console.log('One of the two workers is killed.');
  await first.kill();
  // Its runs have ended here.
  await db
    .update(exportRuns)
    .set({ endedAt: sql`clock_timestamp()` })
    .where(and(isNull(exportRuns.endedAt), eq(exportRuns.pid, first.pid)));
  await until('all jobs end', async () => (await db.$count(queueJobs)) === 0);
  await second.stop();
  addUp(await numbers(db));
  console.log('Nobody had more than two, nobody waited for the large one, and every account is in order.');
});

async function numbers(db: Stage['db']): Promise<Parameters<typeof addUp>[0]> {
  const runs = await db.select().from(exportRuns).orderBy(asc(exportRuns.startedAt));
  const atOnce = runs.map(
    ({ tenant, startedAt }) =>
      runs.filter(
        (run) =>
          run.tenant === tenant && run.startedAt <= startedAt && (run.endedAt ?? startedAt) > startedAt,
      ).length,
  );
  const lastOfSmall = runs.findLast(({ tenant }) => tenant !== 'large');
  const behind = runs.filter(
    ({ tenant, startedAt }) => tenant === 'large' && startedAt > (lastOfSmall?.startedAt ?? startedAt),
  ).length;
  console.log(`${runs.length} runs of ${LARGE + 2 * SMALL_TENANTS} exports.`);
  console.log(`When the last small tenant's export began, ${behind} of the large one were still to begin.`);

  const booked = await db.select().from(entries).orderBy(asc(entries.account), asc(entries.id));
  const wrong = booked.filter(({ account, number, balance }, at) => {
    const before = booked[at - 1];
    const isFirst = before?.account !== account;
    return (
      number !== (isFirst ? 1 : before.number + 1) || balance !== (isFirst ? 0 : before.balance) + number
    );
  });
  return [
    ['Exports of a tenant at once, at most', 2, Math.max(...atOnce)],
    ['The small tenants waited for the large one', false, behind === 0],
    ['Entries booked', ACCOUNTS * ENTRIES, booked.length],
    ['… out of order', 0, wrong.length],
  ];
}

/**
 * Three mornings of twelve tenants all over the world. A mail server puts one of them off at first, has no mailbox for another, and takes
 * a mail whose sender is killed before it hears so. At the end each tenant that can be reached has one mail for each morning with events,
 * and each of these is in one.
 */
import { asc, eq, sql } from 'drizzle-orm';
import { addUp, onStage, type Stage, until } from '../stage/on-stage.ts';
import { openSmtpSink, type ReceivedMail, type SmtpSink } from './demo/smtp-sink.ts';
import { digestName, queue } from './jobs.ts';
import { digests, events, queueJobs, queueResults, queueWorkers, tenants } from './schema.ts';
import { createTenant, moveTenant, removeTenant } from './tenants.ts';

const ZONES = ['Europe/Vienna', 'America/New_York', 'Asia/Tokyo', 'Pacific/Auckland'];
const TENANTS = 12;
const MORNINGS = 3;
const DAY_MS = 24 * 3_600_000;
/** The tenants that something happens to. */
const [GREYLISTED, KILLED, NOBODY, QUIET] = ['tenant-2', 'tenant-5', 'tenant-7', 'tenant-9'];

/** When the next digest of each tenant was due as the demo began. */
const firstTicks = new Map<number, number>();
/** Whether the mail server's answer for KILLED is still to get lost. */
let holds = true;
let putOff = 0;

await onStage(import.meta.url, async ({ db, start }) => {
  const sink = await openSmtpSink({
    refuse(to) {
      if (to.startsWith(`${NOBODY}@`)) return '550 No such mailbox';
      if (to.startsWith(`${GREYLISTED}@`) && putOff < 2) {
        putOff++;
        return '451 Try again later';
      }
      return undefined;
    },
    swallowsAnswer: (mail) => holds && isForKilled(mail) && mail.lines.join().includes('morning 2'),
  });
  for (let number = 1; number <= TENANTS; number++) {
    const name = `tenant-${number}`;
    const timeZone = ZONES[number % ZONES.length] ?? 'UTC';
    await createTenant(db, { name, email: `${name}@mail.example`, timeZone });
  }
  const [moved] = await db.select().from(tenants).where(eq(tenants.name, 'tenant-3'));
  await moveTenant(db, moved?.id ?? 0, 'Africa/Nairobi');
  await removeTenant(
    db,
    await createTenant(db, { name: 'gone', email: 'gone@mail.example', timeZone: 'UTC' }),
  );

  const workers = [1, 2].map(() => start('worker.ts', { SMTP_URL: sink.url }));
  await dawn(db, 1);
  await until('the first morning ends', async () => (await db.$count(queueJobs)) === 0);
  console.log(`The first morning: ${sink.mails.length} mails.`);

  await dawn(db, 2);
  await until('all mails but one are sent', async () => (await db.$count(queueJobs)) === 1);
  await until('the last one is taken', () => sink.mails.filter(isForKilled).length === 2);
  const pid = await senderTo(db, KILLED);
  const killed = workers.find((worker) => worker.pid === pid);
  if (killed === undefined) throw new Error(`No worker has the pid ${pid}`);
  await killed.kill();
  holds = false;
  console.log('The second morning: a worker is killed whose mail was taken, before it has heard so.');
  // It happened in time, but committed late.
  await happen(db, KILLED, 2, 'late');
  await until('the second morning ends', async () => (await db.$count(queueJobs)) === 0);

  await dawn(db, 3);
  await until('the third morning ends', async () => (await db.$count(queueJobs)) === 0);
  for (const worker of workers) if (worker !== killed) await worker.stop();
  sink.close();
  addUp(await numbers(db, sink));
  console.log(
    'Each tenant that can be reached has one mail for each morning with events, and each of these is in one.',
  );
});

/** Lets things happen before a morning, and then the clocks of all tenants strike eight; one of them twice. */
async function dawn(db: Stage['db'], morning: number): Promise<void> {
  const all = await db.select().from(tenants).orderBy(asc(tenants.id));
  for (const [at, { name }] of all.entries()) {
    if (name === QUIET && morning === 2) continue;
    for (let number = 0; number <= (at + morning) % 4; number++) await happen(db, name, morning, `${number}`);
  }
  for (const tenant of all) {
    const tick = await periodEnd(db, tenant.id, morning);
    // In earnest the workers do this at eight; here nobody has the time.
    await queue.schedules.runNow(db, digestName(tenant.id), { tick });
    if (tenant.name === 'tenant-1') await queue.schedules.runNow(db, digestName(tenant.id), { tick });
  }
}

async function happen(db: Stage['db'], tenant: string, morning: number, what: string): Promise<void> {
  const [row] = await db.select().from(tenants).where(eq(tenants.name, tenant));
  const tenantId = row?.id ?? 0;
  const happenedAt = new Date((await periodEnd(db, tenantId, morning)).getTime() - 3_600_000);
  await db
    .insert(events)
    .values({ tenantId, happenedAt, text: `${tenant}: ${what} before morning ${morning}` });
}

/** Eight o'clock, where the tenant is; no morning is the next one, which may dawn during the demo. */
async function periodEnd(db: Stage['db'], tenantId: number, morning: number): Promise<Date> {
  if (!firstTicks.has(tenantId)) {
    const schedule = await queue.schedules.find(db, digestName(tenantId));
    firstTicks.set(tenantId, schedule?.nextAt?.getTime() ?? 0);
  }
  return new Date((firstTicks.get(tenantId) ?? 0) + morning * DAY_MS);
}

function isForKilled({ to }: ReceivedMail): boolean {
  return to.startsWith(`${KILLED}@`);
}

/** The process that runs a tenant's job. */
async function senderTo(db: Stage['db'], tenant: string): Promise<number> {
  const [holder] = await db
    .select({ name: queueWorkers.name })
    .from(queueJobs)
    .innerJoin(queueWorkers, eq(queueWorkers.id, queueJobs.workerId))
    .innerJoin(tenants, eq(sql`${tenants.id}::text`, queueJobs.groupKey))
    .where(eq(tenants.name, tenant));
  // Unless a worker is given a name, it is `host:pid`.
  return Number(holder?.name.split(':').at(-1));
}

async function numbers(db: Stage['db'], sink: SmtpSink): Promise<Parameters<typeof addUp>[0]> {
  const all = await db.select().from(tenants).orderBy(asc(tenants.id));
  const eights = await Promise.all(
    all.map(async ({ id, timeZone }) => {
      const schedule = await queue.schedules.find(db, digestName(id));
      return schedule?.nextAt?.toLocaleTimeString('en-GB', { timeZone });
    }),
  );
  const { schedules } = await queue.schedules.list(db);
  const byId = new Map(sink.mails.map((mail) => [mail.messageId, mail]));
  const differing = sink.mails.filter(
    ({ messageId, lines }) => byId.get(messageId)?.lines.join() !== lines.join(),
  );
  const mails = [...byId.values()];
  const happened = (await db.select({ text: events.text }).from(events)).map(({ text }) => `- ${text}`);
  const reachable = happened.filter((line) => !line.includes(`${NOBODY}:`));
  const sent = mails.flatMap(({ lines }) => lines);
  const misplaced = mails.flatMap(({ to, lines }) =>
    lines.filter((line) => !line.startsWith(`- ${to.split('@')[0]}:`)),
  );
  const late = mails.filter(({ lines }) => lines.some((line) => line.includes('late')));
  const results = await db.select().from(queueResults);
  const marked = await db.select().from(digests);
  // One tenant cannot be reached, and one had nothing to hear of one morning.
  const expected = (TENANTS - 1) * MORNINGS - 1;
  return [
    ['Schedules, one for each tenant', TENANTS, schedules.length],
    [
      "Tenants whose next digest is due at eight o'clock there",
      TENANTS,
      eights.filter((at) => at === '08:00:00').length,
    ],
    ['Digests received, by their Message-ID', expected, mails.length],
    ['… each by one tenant for one morning', expected, new Set(mails.map(morningOf)).size],
    ['Mails received twice, since their sender was killed', 1, sink.mails.length - mails.length],
    ['… and not the same the second time', 0, differing.length],
    ['Events that happened to tenants with a mailbox', reachable.length, new Set(sent).size],
    ['… that are in two digests', 0, sent.length - new Set(sent).size],
    ['… that are in the digest of another tenant', 0, misplaced.length],
    [
      'The event that came late is in the digest of',
      'morning 3',
      late.map((mail) => morningOf(mail).split(': ')[1]).join(),
    ],
    ['Digests marked as sent', expected, marked.filter(({ sentAt }) => sentAt !== null).length],
    ['Jobs that completed', expected, results.filter(({ state }) => state === 'completed').length],
    ['Times that a mail was put off', 2, putOff],
    [
      'Digests discarded for want of a mailbox',
      MORNINGS,
      results.filter(({ state }) => state === 'discarded').length,
    ],
  ];
}

/** The tenant and the last morning that a mail tells of. */
function morningOf({ to, lines }: ReceivedMail): string {
  return `${to}: ${lines.at(-1)?.match(/morning \d/)?.[0]}`;
}

/** A process that fires the tenants' schedules and sends their digests, until SIGINT or SIGTERM. */
import { eq, sql } from 'drizzle-orm';
import { cancel, createWorker, handlersFor, NonRetryableError } from 'drizzle-queue';
import { createTransport } from 'nodemailer';
import { collectDigest } from './collect.ts';
import { connect } from './database.ts';
import { queue, sendDigest } from './jobs.ts';
import { digests, tenants } from './schema.ts';

const db = connect();
const { handle } = handlersFor<typeof db>();
// It takes no signal: what hangs must end before the job's timeout, or the next attempt would run beside it.
const mailer = createTransport(
  {
    url: process.env.SMTP_URL ?? 'smtp://localhost:25',
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: 20_000,
  },
  { from: 'digest@app.example' },
);

interface SmtpError {
  /** What the server has refused. */
  readonly command?: string;
  readonly responseCode?: number;
}

const sending = handle(sendDigest, async ({ payload: { tenantId }, job, db, complete }) => {
  const [tenant] = await db.select().from(tenants).where(eq(tenants.id, tenantId));
  if (tenant === undefined) return cancel('The tenant is gone');

  // The period ends at the tick, and not when the job happens to run.
  const digest = await collectDigest(db, tenantId, new Date(String(job.metadata.tick)));
  if (digest === undefined || digest.lines.length === 0) return cancel('Nothing has happened');
  if (digest.sentAt !== null) return cancel('It was sent by another job');

  // The same in all attempts, as the text is: should this process die before the commit below, the mail goes out again, and
  // mailboxes show it once. A provider with an API takes an idempotency key for that.
  const messageId = `<digest-${digest.id}@app.example>`;
  const text = digest.lines.map((line) => `- ${line}\n`).join('');
  const subject = `${digest.lines.length} news for ${tenant.name}`;
  await mailer.sendMail({ messageId, to: tenant.email, subject, text }).catch((error: unknown) => {
    // SMTP: 4xx may pass, and is retried; 5xx will not, if it is about the recipient. About anything else, such as a
    // password that was changed, it concerns all tenants, and passes when somebody has seen to it.
    const { command, responseCode = 0 }: SmtpError = Object(error);
    if (command !== 'RCPT TO' || responseCode < 500) throw error;
    throw new NonRetryableError(`The mail server answered ${responseCode}`, { cause: error });
  });

  // One commit for both: the digest is marked as sent, and the job is done.
  await db.transaction(async (tx) => {
    await tx.update(digests).set({ sentAt: sql`now()` }).where(eq(digests.id, digest.id));
    await complete(tx, { messageId, events: digest.lines.length });
  });
});

const worker = createWorker(db, { queue, handlers: [sending], queues: { digests: { concurrency: 8 } } });
await worker.run();
await db.$client.end({ timeout: 5 });

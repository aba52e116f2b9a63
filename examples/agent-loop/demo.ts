/**
 * Agents answer tickets: each asks a model for its next step, uses a tool, and asks again, within a budget. A
 * refund needs a person's approval. The worker is killed when a turn was billed and not yet answered, again
 * while all agents wait for a person, and at random moments. At the end no turn was paid for twice, and no
 * tool was used twice.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { and, eq, isNull, like } from 'drizzle-orm';
import { addUp, onStage, type Stage, until } from '../stage/on-stage.ts';
import { openModel, TURN_CENTS } from './demo/open-model.ts';
import { answerTicket, approval, queue } from './jobs.ts';
import { letters, queueJobs, queueResults, queueSteps, refunds, tickets } from './schema.ts';

const TICKETS = 12;
/** Five turns are enough for a refund. */
const BUDGET_CENTS = 8 * TURN_CENTS;
/** Every fourth ticket is a riddle, which no number of turns solves. */
const isRiddle = (n: number) => n % 4 === 3;
/** Of the refunds, every third is refused. */
const isRefused = (n: number) => n % 3 === 0;

await onStage(import.meta.url, async ({ db, start }) => {
  let kills = 0;
  // The tenth turn is billed, and the worker dies before it has the answer.
  const model = await openModel(async (bills) => {
    if (bills === 10) await restart();
  });
  const begin = () => start('worker.ts', { MODEL_URL: model.url });
  let worker = begin();
  const restart = async () => {
    await worker.kill();
    kills++;
    worker = begin();
  };
  await worker.message();

  const numbers = Array.from({ length: TICKETS }, (_, n) => n);
  const asked = await Promise.all(numbers.map(async (n) => ({ n, ...(await openTicket(db, n)) })));
  const refundable = asked.filter(({ n }) => !isRiddle(n));
  await until('all refunds wait for a person', async () => {
    const waiting = and(eq(queueSteps.kind, 'signal'), isNull(queueSteps.endedAt));
    return (await db.$count(queueSteps, waiting)) === refundable.length;
  });
  await restart();
  console.log(
    `${kills} times the worker was killed. ${refundable.length} agents wait for a person, who decides now.`,
  );

  for (const { n, jobId } of refundable) {
    await queue.workflows.signal(db, { id: jobId }, approval, { by: 'Ada', ok: !isRefused(n) });
    if (n % 4 === 0) {
      await delay(Math.random() * 300);
      await restart();
    }
  }
  await until('all tickets are closed', async () => (await db.$count(queueJobs)) === 0);
  await worker.stop();
  model.close();

  const riddles = TICKETS - refundable.length;
  const refused = refundable.filter(({ n }) => isRefused(n)).length;
  const turns = 4 * refundable.length + (riddles * BUDGET_CENTS) / TURN_CENTS;
  const spent = (await db.select().from(tickets)).reduce((sum, ticket) => sum + ticket.spentCents, 0);
  const billed = [...model.bills.values()].reduce((sum, cents) => sum + cents, 0);
  console.log(`${model.repeats()} requests were repeated after a kill, and billed once.`);
  addUp([
    ['Tickets answered', refundable.length, await db.$count(tickets, eq(tickets.state, 'answered'))],
    ['… given up at their budget', riddles, await db.$count(tickets, eq(tickets.state, 'over budget'))],
    ['Turns billed by the model', turns, model.bills.size],
    ['… and recorded as steps', turns, await db.$count(queueSteps, like(queueSteps.name, 'turn-%'))],
    ['Cents billed by the model', turns * TURN_CENTS, billed],
    ['Cents in the books of the tickets', billed, spent],
    ['Refunds, one for each approval', refundable.length - refused, await db.$count(refunds)],
    ['Letters, one for each decision', refundable.length, await db.$count(letters)],
    ['… that refuse', refused, await db.$count(letters, eq(letters.body, 'We cannot refund this order.'))],
    ['Jobs that failed', 0, await db.$count(queueResults, eq(queueResults.state, 'discarded'))],
  ]);
  console.log(`No turn was paid for twice, although the worker was killed ${kills} times.`);
});

/** The ticket and its agent commit together. */
async function openTicket(db: Stage['db'], n: number): Promise<{ ticketId: number; jobId: number }> {
  const question = isRiddle(n) ? 'Solve me a riddle' : 'I want my money back';
  return await db.transaction(async (tx) => {
    const [ticket] = await tx.insert(tickets).values({ question }).returning();
    if (ticket === undefined) throw new Error('no ticket');
    const payload = { ticketId: ticket.id, question, budgetCents: BUDGET_CENTS };
    const { id } = await queue.enqueue(tx, answerTicket, payload);
    return { ticketId: ticket.id, jobId: id };
  });
}

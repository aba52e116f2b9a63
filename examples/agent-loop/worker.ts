/** A process that runs agents, until SIGINT or SIGTERM. */
import { eq } from 'drizzle-orm';
import { createWorker, handlersFor } from 'drizzle-queue';
import { connect } from './database.ts';
import { answerTicket, approval, queue } from './jobs.ts';
import { type Message, nextTurn, type Turn } from './model.ts';
import { letters, refunds, tickets } from './schema.ts';

const db = connect();
const { handle } = handlersFor<typeof db, typeof queue>();

const agent = handle(answerTicket, async ({ payload, job, step, signal, complete }) => {
  const { ticketId, question, budgetCents } = payload;
  const messages: Message[] = [{ from: 'customer', text: question }];
  let spentCents = 0;

  for (let n = 0; ; n++) {
    if (spentCents >= budgetCents) return await end('over budget', null);

    // A turn that is recorded is not asked for again: after a crash the loop gets here without a call.
    const open = await step.begin<Turn>(`turn-${n}`);
    const turn = open.output ?? (await open.record(await nextTurn(messages, `${job.id}:turn-${n}`, signal)));
    spentCents += turn.costCents;
    messages.push({ from: 'model', text: JSON.stringify(turn.wish) });

    if ('answer' in turn.wish) return await end('answered', turn.wish.answer);
    messages.push({ from: 'tool', text: await use(n, turn.wish) });
  }

  /** Does what the model wants, once, and returns what that has brought. */
  async function use(n: number, wish: Exclude<Turn['wish'], { answer: string }>): Promise<string> {
    switch (wish.tool) {
      case 'look up order':
        return await step.run(`look-up-${n}`, () => 'The order was paid with 4,000 cents');
      case 'write letter':
        // Exactly once: the letter commits with the record of the step.
        await step.transaction(`letter-${n}`, async (tx) => {
          await tx.insert(letters).values({ ticketId, body: wish.body });
        });
        return 'The letter is on its way';
      case 'refund': {
        // A day may pass here. The job holds no slot and no connection meanwhile.
        const decision = await step.waitForSignal(approval, { name: `approval-${n}`, timeoutMs: 86_400_000 });
        if (decision === undefined) return 'There was no decision within a day';
        if (!decision.ok) return `${decision.by} has refused the refund`;
        await step.run(`refund-${n}`, async ({ idempotencyKey: key }) => {
          await db.insert(refunds).values({ key, ticketId, cents: wish.cents }).onConflictDoNothing();
        });
        return `${decision.by} has approved the refund`;
      }
    }
  }

  async function end(state: 'answered' | 'over budget', answer: string | null): Promise<void> {
    await db.transaction(async (tx) => {
      await tx.update(tickets).set({ state, answer, spentCents }).where(eq(tickets.id, ticketId));
      await complete(tx);
    });
  }
});

const worker = createWorker(db, { queue, handlers: [agent], concurrency: 10, log: false });
// It is killed again and again, and some of its statements with it.
worker.on('error', () => {});
worker.on('started', () => process.send?.('ready'));
await worker.run();
await db.$client.end({ timeout: 5 });

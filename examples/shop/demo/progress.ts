import { setInterval } from 'node:timers/promises';
import { and, eq, gt, isNull } from 'drizzle-orm';
import type { ShopDatabase } from '../database.ts';
import { packOrder, sendReceipt } from '../jobs.ts';
import { queueJobs, queueResults } from '../schema.ts';
import type { PlacedOrder } from './customers.ts';
import type { PlannedOrder } from './plan.ts';
import { isTerminal, say, showLive, styled } from './terminal.ts';

export interface Watched {
  readonly plan: readonly PlannedOrder[];
  /** Grows while the customers place their orders. */
  readonly placed: readonly PlacedOrder[];
  readonly signal: AbortSignal;
}

/** Shows how the shop is doing, until every order is answered and every job has ended. */
export async function watchUntilDone(db: ShopDatabase, { plan, placed, signal }: Watched): Promise<void> {
  const toAccept = plan.filter(({ accepted }) => accepted).length;
  let ticks = 0;
  for await (const _ of setInterval(100, undefined, { signal })) {
    // Before the query: the jobs of an order that is placed during it might not be counted.
    const allPlaced = placed.length === plan.length;
    const [live, receipts, parcels] = await Promise.all([
      // A finished job has left this table, so nothing in it means that all is done.
      db.$count(queueJobs),
      countJobs(db, sendReceipt.kind),
      countJobs(db, packOrder.kind),
    ]);
    const declined = placed.filter(({ status }) => status === 402).length;
    if (isTerminal) {
      showLive([
        '',
        bar('orders', placed.length, plan.length, `${declined} declined`),
        bar('receipts', receipts.ended, toAccept, `${receipts.retrying} to retry`),
        bar('parcels', parcels.ended, toAccept, `${parcels.retrying} to retry`),
      ]);
    } else if (ticks++ % 10 === 0) {
      say(
        `  ${padded(placed.length)} orders, ${padded(declined)} declined` +
          ` · ${padded(receipts.ended)} receipts, ${padded(receipts.retrying)} to retry` +
          ` · ${padded(parcels.ended)} parcels, ${padded(parcels.retrying)} to retry`,
      );
    }
    if (allPlaced && live === 0) return;
  }
}

async function countJobs(db: ShopDatabase, kind: string): Promise<{ ended: number; retrying: number }> {
  const [ended, retrying] = await Promise.all([
    db.$count(queueResults, eq(queueResults.kind, kind)),
    // It has been tried, and nobody holds it now.
    db.$count(queueJobs, and(eq(queueJobs.kind, kind), gt(queueJobs.attempt, 0), isNull(queueJobs.workerId))),
  ]);
  return { ended, retrying };
}

function padded(number: number): string {
  return String(number).padStart(3);
}

const BAR_WIDTH = 30;

function bar(what: string, done: number, total: number, note: string): string {
  const filled = Math.floor(Math.min(done / total, 1) * BAR_WIDTH);
  const blocks = styled('green', '█'.repeat(filled)) + styled('dim', '░'.repeat(BAR_WIDTH - filled));
  return `         ${what.padEnd(8)}  ${blocks}  ${padded(done)} of ${total}   ${styled('dim', note)}`;
}

import { sql } from 'drizzle-orm';
import { createQueue, defineJob, limitsIn, type QueueLimits, unvalidated } from 'drizzle-queue';
import * as control from 'drizzle-queue/schema/control';
import type { OpenEnqueuer } from '../../child/enqueuer.ts';
import { connectApp, newOrder, orders } from '../../child/orders.ts';

export interface EnqueueMode {
  /** What `createQueue` is told. @default true */
  readonly wakeUps?: boolean;
  /** A NOTIFY of its own in every transaction, as some queues have it. @default false */
  readonly notifyEach?: boolean;
  /** No job at all: what the order alone costs. @default false */
  readonly orderAlone?: boolean;
  /** The limits of the queue; where they declare groups, {@link GROUPS} of them get a job each in turn. @default none */
  readonly limits?: QueueLimits | undefined;
}

const GROUPS = 10;

const job = defineJob('bench', { payload: unvalidated<{ n: number }>(), queue: 'bench' });

/** `queue.enqueue` with the app's own transaction. */
export const openEnqueuer: OpenEnqueuer = async ({ url, connections, options = {} }) => {
  const { wakeUps = true, notifyEach = false, orderAlone = false, limits } = options as EnqueueMode;
  const declared = limits?.groups && { limits: limitsIn(control, { bench: limits }) };
  const settings: Readonly<Record<string, unknown>> = { wakeUps, ...declared };
  const queue = createQueue(settings);
  const grouped = (n: number) => (declared === undefined ? undefined : { group: String(n % GROUPS) });
  const { db, close } = connectApp(url, connections);
  return {
    async enqueue(n) {
      await queue.enqueue(db, job, { n }, grouped(n));
    },
    async order(n) {
      await db.transaction(async (tx) => {
        await tx.insert(orders).values(newOrder);
        if (orderAlone) return;
        await queue.enqueue(tx, job, { n });
        if (notifyEach) await tx.execute(sql`select pg_notify('bench', '')`);
      });
    },
    async late(n, openMs) {
      await db.transaction(async (tx) => {
        await queue.enqueue(tx, job, { n });
        await new Promise((resolve) => setTimeout(resolve, openMs));
      });
    },
    async many(from, count) {
      await queue.enqueueMany(
        db,
        job,
        Array.from({ length: count }, (_, index) => ({ payload: { n: from + index } })),
      );
    },
    close,
  };
};

/** What the database says when all is over, read with Drizzle: the queue's tables are tables like any other. */
import { and, asc, count, eq, isNull, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type { ShopDatabase } from '../database.ts';
import { packOrder, queue, sendReceipt } from '../jobs.ts';
import { orders, products, queueJobs, queueResults, queueWorkers } from '../schema.ts';

export type Evidence = Awaited<ReturnType<typeof readEvidence>>;

export async function readEvidence(db: ShopDatabase) {
  // The queue's own reading side: payload and output are typed by the definition.
  const discarded = await queue.list(db, { job: sendReceipt, state: 'discarded', limit: 1_000 });
  return {
    orders: await ordersWithResults(db),
    outcomes: await outcomes(db),
    waits: await latencies(db, sql`${queueResults.claimedAt} - ${queueResults.createdAt}`, onFirstAttempt),
    totals: await latencies(db, sql`${queueResults.finishedAt} - ${queueResults.createdAt}`),
    discarded: discarded.jobs,
    jobsPerWorker: await jobsPerWorker(db),
    jobsLeft: await db.$count(queueJobs),
    jobsWithoutOrder: await jobsWithoutOrder(db),
    stock: new Map((await db.select().from(products)).map(({ sku, stock }) => [sku, stock])),
    workersLeft: await db.$count(queueWorkers),
  };
}

const receipt = alias(queueResults, 'receipt');
const parcel = alias(queueResults, 'parcel');

/** Every order beside the results of its two jobs. */
async function ordersWithResults(db: ShopDatabase) {
  return await db
    .select({
      order: orders,
      receipt: {
        state: receipt.state,
        attempts: receipt.attempt,
        output: sql<string | null>`${receipt.output} ->> 'messageId'`,
      },
      parcel: {
        state: parcel.state,
        attempts: parcel.attempt,
        output: sql<string | null>`${parcel.output} ->> 'parcelId'`,
      },
    })
    .from(orders)
    .leftJoin(receipt, and(eq(receipt.kind, sendReceipt.kind), eq(orderIdIn(receipt.payload), orders.id)))
    .leftJoin(parcel, and(eq(parcel.kind, packOrder.kind), eq(orderIdIn(parcel.payload), orders.id)))
    .orderBy(asc(orders.id));
}

/** The order that a job is about. */
function orderIdIn(payload: SQLWrapper): SQL<number> {
  return sql<number>`(${payload} ->> 'orderId')::int`;
}

/** How the jobs have ended, after how many attempts. */
async function outcomes(db: ShopDatabase) {
  const { kind, state, attempt, errors } = queueResults;
  return await db
    .select({
      kind,
      state,
      attempts: attempt,
      jobs: count(),
      failures: sql`sum(jsonb_array_length(${errors}))`.mapWith(Number),
      lastError: sql<string | null>`max(${errors} -> -1 ->> 'message')`,
    })
    .from(queueResults)
    .groupBy(kind, state, attempt)
    .orderBy(asc(kind), asc(state), asc(attempt));
}

// `claimed_at` is the time of the last claim, so only these tell how long a new job waits for a worker.
const onFirstAttempt = eq(queueResults.attempt, 1);

/** Percentiles of a time span over the jobs of each kind, in milliseconds. All by one clock: the database's. */
async function latencies(db: ShopDatabase, span: SQL, where?: SQL) {
  const milliseconds = sql`extract(epoch from ${span}) * 1000`;
  const percentile = (fraction: number) =>
    sql`round(percentile_cont(${fraction}::float8) within group (order by ${milliseconds}))`.mapWith(Number);
  return await db
    .select({
      kind: queueResults.kind,
      jobs: count(),
      p50: percentile(0.5),
      p95: percentile(0.95),
      p99: percentile(0.99),
      max: percentile(1),
    })
    .from(queueResults)
    .where(where)
    .groupBy(queueResults.kind)
    .orderBy(asc(queueResults.kind));
}

async function jobsPerWorker(db: ShopDatabase) {
  const { kind, workerId } = queueResults;
  const ofKind = (job: { kind: string }) =>
    sql`count(*) filter (where ${kind} = ${job.kind})`.mapWith(Number);
  return await db
    .select({ workerId, receipts: ofKind(sendReceipt), parcels: ofKind(packOrder) })
    .from(queueResults)
    .groupBy(workerId)
    .orderBy(asc(workerId));
}

/** Jobs of orders that do not exist: what a rolled-back order would have left. */
async function jobsWithoutOrder(db: ShopDatabase): Promise<number> {
  const rows = await db
    .select({ id: queueResults.jobId })
    .from(queueResults)
    .leftJoin(orders, eq(orderIdIn(queueResults.payload), orders.id))
    .where(isNull(orders.id));
  return rows.length;
}

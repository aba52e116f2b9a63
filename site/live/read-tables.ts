import { desc, eq, sql } from 'drizzle-orm';
import { queueJobs, queueResults, queueWorkers } from 'drizzle-queue/schema';
import type { drizzleOn } from './connection.ts';
import { orders } from './jobs.ts';
import type { ShownRows } from './show-rows.ts';

type Db = ReturnType<typeof drizzleOn>;

const MOST = 12;

export interface ShownTables {
  readonly jobs: ShownRows;
  readonly results: ShownRows;
  readonly workers: ShownRows;
  readonly orders: ShownRows;
}

/** What the tables hold, by ordinary queries of Drizzle: the visitor's look with psql. */
export async function readTables(db: Db): Promise<ShownTables> {
  const seconds = (time: unknown) =>
    sql<string>`round(extract(epoch from statement_timestamp() - ${time})::numeric, 1)::text || ' s ago'`;
  const jobs = await db
    .select({
      id: queueJobs.id,
      payload: queueJobs.payload,
      state: sql<string>`case when ${queueJobs.workerId} is null and ${queueJobs.runAt} > statement_timestamp()
        then 'scheduled' when ${queueWorkers.id} is null then 'due' else 'running' end`,
      worker: queueWorkers.name,
      attempt: queueJobs.attempt,
    })
    .from(queueJobs)
    .leftJoin(queueWorkers, eq(queueWorkers.id, queueJobs.workerId))
    .orderBy(desc(queueJobs.id))
    .limit(MOST);
  const results = await db
    .select({
      id: queueResults.jobId,
      state: queueResults.state,
      output: queueResults.output,
      attempt: queueResults.attempt,
      finished: seconds(queueResults.finishedAt),
    })
    .from(queueResults)
    .orderBy(desc(queueResults.finishedAt))
    .limit(MOST);
  const workers = await db
    .select({ id: queueWorkers.id, name: queueWorkers.name, seen: seconds(queueWorkers.seenAt) })
    .from(queueWorkers)
    .orderBy(queueWorkers.id);
  const placed = await db.select().from(orders).orderBy(desc(orders.id)).limit(MOST);
  return {
    jobs: {
      count: await db.$count(queueJobs),
      columns: ['id', 'payload', 'state', 'held by', 'attempt'],
      rows: jobs.map(({ id, payload, state, worker, attempt }) => [
        `${id}`,
        JSON.stringify(payload),
        state,
        worker ?? '–',
        `${attempt}`,
      ]),
    },
    results: {
      count: await db.$count(queueResults),
      columns: ['job_id', 'state', 'output', 'attempt', 'finished_at'],
      rows: results.map(({ id, state, output, attempt, finished }) => [
        `${id}`,
        state,
        JSON.stringify(output),
        `${attempt}`,
        finished,
      ]),
    },
    workers: {
      count: workers.length,
      columns: ['id', 'name', 'seen_at'],
      rows: workers.map(({ id, name, seen }) => [`${id}`, name ?? '–', seen]),
    },
    orders: {
      count: await db.$count(orders),
      columns: ['id', 'item'],
      rows: placed.map(({ id, item }) => [`${id}`, item]),
    },
  };
}

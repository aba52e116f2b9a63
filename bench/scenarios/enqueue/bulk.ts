import { type SQL, sql } from 'drizzle-orm';
import { integer, PgDialect, pgTable } from 'drizzle-orm/pg-core';
import { createQueue, defineJob, unvalidated } from 'drizzle-queue';
import { nowMs } from '../../child/counter.ts';
import { type EnqueuerRequest, openEnqueuer } from '../../child/enqueuer.ts';
import { connectApp } from '../../child/orders.ts';

/** What puts the rows in: an enqueuer, or a statement of its own. */
export type BulkForm = 'enqueuer' | 'bare' | 'bare, prepared' | 'enqueueFrom' | 'bare select';

export interface BulkRequest extends EnqueuerRequest {
  readonly form: BulkForm;
  /** How many jobs at once. */
  readonly jobs: number;
  /** Again and again for so long; once when 0. */
  readonly measuredMs: number;
}

const numbers = pgTable('numbers', { n: integer().notNull() });
const job = defineJob('bench', { payload: unvalidated<{ n: number }>(), queue: 'bench' });

/** Rows per second that one connection puts in. */
export async function bulk(request: BulkRequest): Promise<number> {
  const { jobs, measuredMs } = request;
  const { run, close } = await open(request);
  if (measuredMs > 0) for (let warmUp = 0; warmUp < 10; warmUp++) await run();
  const startMs = nowMs();
  let rows = 0;
  do {
    await run();
    rows += jobs;
  } while (nowMs() < startMs + measuredMs);
  const perSecond = (rows * 1_000) / (nowMs() - startMs);
  await close();
  return perSecond;
}

async function open(request: BulkRequest): Promise<{ run(): Promise<unknown>; close(): Promise<void> }> {
  const { form, jobs, url } = request;
  if (form === 'enqueuer') {
    const { many, close } = await openEnqueuer(request);
    return { run: () => many(0, jobs), close };
  }
  const { client, db, close } = connectApp(url, 1);
  const forms = {
    enqueueFrom: () => createQueue().enqueueFrom(db, job, db.select({ n: numbers.n }).from(numbers)),
    'bare select': () =>
      db.execute(sql`
        insert into queue_jobs (queue, kind, payload, max_attempts)
        select 'bench', 'bench', jsonb_build_object('n', n), 20 from numbers`),
    bare: () => db.execute(bareInsert(payloads())),
    'bare, prepared': insertPrepared,
  };
  return { run: forms[form], close };

  async function insertPrepared(): Promise<unknown> {
    const { sql: text, params } = new PgDialect().sqlToQuery(bareInsert(payloads()));
    return await client.unsafe(text, params as never[], { prepare: true });
  }

  function payloads(): string {
    return JSON.stringify(Array.from({ length: jobs }, (_, n) => ({ n })));
  }
}

/** The columns that `enqueueMany` sets, and what it asks for, from what it sends: the payloads, and once what they share. */
function bareInsert(payloads: string): SQL {
  return sql`
    insert into queue_jobs
      (queue, kind, payload, priority, run_at, created_at, max_attempts, unique_key, metadata)
    select ${'bench'}::text, ${'bench'}::text, r.payload, ${5}::int2, statement_timestamp(), statement_timestamp(),
      ${20}::int2, ${null}::text, ${'{}'}::text::jsonb
    from jsonb_array_elements(${payloads}::text::jsonb) as r(payload)
    returning id`;
}

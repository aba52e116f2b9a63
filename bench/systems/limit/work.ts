import { PgDialect } from 'drizzle-orm/pg-core';
import * as tables from 'drizzle-queue/schema';
import postgres from 'postgres';
import { MAX_PRIORITY } from '../../../src/core/job/limits.ts';
import { type Band, claimJobsQuery } from '../../../src/core/queries/claim/claim-jobs.ts';
import { finishJobsQuery } from '../../../src/core/queries/settle/finish-jobs.ts';
import type { Program } from '../../child/programs.ts';

export interface LimitOptions {
  /** How many jobs per claim. */
  readonly batch: number;
}

/**
 * The library's own claim and finish, and nothing else of it: no handlers, no events, no decoding. Two connections, prepared
 * statements; the next claim runs beside the finishing of the last.
 */
export const work: Program = async ({ url, onJob }, options) => {
  const { batch } = options as LimitOptions;
  const sql = postgres(url, { max: 2, onnotice: () => {} });
  const dialect = new PgDialect();
  const held = { queue: 'bench', workerId: 1 };
  let bands: Band[] = Array.from({ length: MAX_PRIORITY + 1 }, (_, priority) => ({
    priority,
    floorMs: Number.NEGATIVE_INFINITY,
  }));

  async function claim() {
    const query = claimJobsQuery(tables, {
      ...held,
      kinds: ['bench'],
      bands,
      limit: batch,
      fromGoneWorkers: false,
    });
    const rows = await execute(query);
    const floorMs = Math.floor(Math.min(...rows.map((row) => Number(row.run_at))));
    // All jobs have the same priority.
    if (rows.length > 0)
      bands = bands.map((band) => (band.priority === rows[0]?.priority ? { ...band, floorMs } : band));
    return rows;
  }

  async function finish(rows: Awaited<ReturnType<typeof claim>>): Promise<void> {
    if (rows.length === 0) return;
    const transition = {
      type: 'finish',
      state: 'completed',
      output: null,
      error: null,
      keepResult: false,
    } as const;
    await execute(
      finishJobsQuery(
        tables,
        held,
        rows.map(({ id, fence }) => ({ id: Number(id), fence: Number(fence), transition })),
      ),
    );
  }

  async function execute(query: ReturnType<typeof claimJobsQuery>) {
    const { sql: text, params } = dialect.sqlToQuery(query);
    // The library's parameters are texts, numbers and null.
    return await sql.unsafe(text, params as postgres.ParameterOrJSON<never>[], { prepare: true });
  }

  let ended = false;
  async function loop(): Promise<void> {
    let rows = await claim();
    while (!ended) {
      for (const { payload } of rows) onJob(payload.n);
      [rows] = await Promise.all([claim(), finish(rows)]);
      // Nothing more will come while it is measured; only the end is waited for.
      if (rows.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  const loops = loop();
  return async () => {
    ended = true;
    await loops;
    await sql.end();
  };
};

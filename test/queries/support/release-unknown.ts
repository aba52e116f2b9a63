import { findUnknownJobs, type KnownHoldings } from '../../../src/core/queries/hold/find-unknown-jobs.ts';
import { releaseJobs } from '../../../src/core/queries/hold/release-jobs.ts';
import type { QueueTables } from '../../../src/core/schema/create-queue-tables.ts';
import type { Runner } from '../../../src/core/sql/executor.ts';
import { tables as plainTables } from './jobs.ts';

/** Gives back what a worker holds without knowing it, as `Holdings` does; answers how many. */
export async function releaseUnknown(
  db: Runner,
  holdings: KnownHoldings & { readonly mayHaveBegun?: boolean },
  tables: QueueTables = plainTables,
): Promise<number> {
  const { queue, workerId, mayHaveBegun = false } = holdings;
  const jobs = await findUnknownJobs(db, tables, holdings);
  return (await releaseJobs(db, tables, { queue, workerId, mayHaveBegun }, jobs)).released;
}

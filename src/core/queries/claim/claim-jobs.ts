import type { SQL } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { checkSample } from '../../sql/answer-sample.ts';
import { inClaimOrder } from '../../sql/claim-order.ts';
import { type Claim, claimStatement, MAX_CLAIM_BYTES, shapeOf, valuesOf } from '../../sql/claim-statement.ts';
import { type ClaimedJob, forgetRows, toClaimedJobs } from '../../sql/claimed-job.ts';
import { queryRows, type Runner } from '../../sql/executor.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import { KeptStatements } from '../../sql/kept-statement.ts';
import type { TableSize } from '../../sql/table-size.ts';

export type { Band } from '../../sql/claim-order.ts';
export type { Claim } from '../../sql/claim-statement.ts';
export type { ClaimedJob } from '../../sql/claimed-job.ts';

/**
 * Takes up to `limit` due jobs of one queue, in the order of the bands, `run_at`, id; fewer when their
 * payloads exceed 8 MB, but at least one if any is due. Returns them in that order, or in that of `ids`.
 *
 * **Under concurrency.** No job is given to two claims: a row that another claim has locked is skipped, and a
 * row that it has claimed no longer matches, whatever the bands of the two. No claim waits for another, and
 * none takes more than `limit`. Each claim raises the job's fence, so every earlier holder's writes about it
 * match nothing from here on.
 *
 * Why each part is so:
 * - One exact index range per band (`lateral`): jobs scheduled for tomorrow cost nothing, and the planner
 *   keeps to the index even on a table it knows nothing about yet.
 * - `limit (select …)` hides the number from the planner. Seeing one above the rows it expected
 *   (0.5 % of the band), it sorted a bitmap of the whole band: 27 ms instead of 3.5 for 200 jobs of 30,000.
 * - A CTE and `= any(array(…))`: with `in (select … limit 1 for update skip locked)` and stale statistics the
 *   planner may run the subselect once per row, and 200 rows were updated where 1 was asked for.
 * - `group_key is null` is the predicate of the claim's index: see `defineJobsTable`.
 * - `statement_timestamp()` is stable, so it bounds the index scan; `clock_timestamp()` would only filter.
 * - `for no key update` neither blocks inserts that refer to the job by foreign key nor makes multixacts.
 */
export async function claimJobs(db: Runner, tables: QueueTables, claim: Claim): Promise<ClaimedJob[]> {
  const rows = await queryRows(db, tables, claimJobsQuery(tables, claim));
  await faultPoint('claim: answered');
  // A worker has looked when it started; `runNext` has no start.
  if (claim.heedPauses && rows[0] !== undefined) checkSample(rows[0]);
  // The rows of an update come in no order.
  const jobs = toClaimedJobs(tables.queueJobs, inClaimOrder(rows, claim), claim.queue);
  forgetRows(rows);
  return jobs;
}

/**
 * The same by a prepared statement that Postgres plans once, for tables of one size. A small claim takes less
 * than half of the time by it. See `TableSize` for what its plan may be.
 *
 * @returns `undefined` where the table is of another size: then it has claimed nothing
 */
export async function claimByKeptPlan(
  db: Runner,
  tables: QueueTables,
  claim: Omit<Claim, 'ids'> & { readonly ifTableIs: TableSize },
): Promise<ClaimedJob[] | undefined> {
  const rows = await queryRows(db, tables, claimJobsQuery(tables, claim));
  await faultPoint('claim: answered');
  if (rows[0]?.[claim.ifTableIs] !== true) return undefined;
  // Without a job there is one row that says so.
  const found = rows.filter(({ id }) => id !== null);
  forgetRows(rows);
  return toClaimedJobs(tables.queueJobs, inClaimOrder(found, claim), claim.queue);
}

/** Whether a claim saw the end of what is due: neither its limit nor the payloads' size stopped it. */
export function sawTheEnd(limit: number, jobs: readonly ClaimedJob[]): boolean {
  if (jobs.length >= limit) return false;
  return jobs.reduce((bytes, { payloadBytes }) => bytes + payloadBytes, 0) < MAX_CLAIM_BYTES;
}

const statements = new KeptStatements(claimStatement);

/**
 * @endsHold the death of a worker, whose job it takes over
 * @insteadOnCitus (of a small table; of a grown table) claimJobsQuery
 * @insteadOnCitus (of members) an error: no worker starts there whose queue has workflows
 */
export function claimJobsQuery(tables: QueueTables, claim: Claim): SQL {
  const shape = shapeOf(claim);
  return statements.of(tables, shape).with(valuesOf(claim, shape));
}

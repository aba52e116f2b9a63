import { type Check, holds } from './check.ts';
import type { Evidence } from './evidence.ts';
import { heading, styled, table } from './terminal.ts';

/** Prints what the database says about the orders and their jobs. */
export function printReport(evidence: Evidence, workerNames: ReadonlyMap<number, string>): void {
  heading('Orders joined to the results of their jobs (the first order of each story)');
  table(
    ['order', 'customer', 'item', 'receipt', 'attempts', 'output', 'parcel', 'attempts', 'output'],
    firstOfEachStory(evidence.orders).map(({ order, receipt, parcel }) => [
      order.id,
      order.email,
      `${order.quantity} ${order.sku}`,
      receipt?.state ?? null,
      receipt?.attempts ?? null,
      receipt?.output ?? null,
      parcel?.state ?? null,
      parcel?.attempts ?? null,
      parcel?.output ?? null,
    ]),
  );

  heading('How the jobs ended');
  table(
    ['kind', 'state', 'attempts', 'jobs', 'last error'],
    evidence.outcomes.map(({ kind, state, attempts, jobs, lastError }) => [
      kind,
      state,
      attempts,
      jobs,
      lastError,
    ]),
  );

  heading('Which worker did them');
  table(
    ['worker', 'receipts', 'parcels'],
    evidence.jobsPerWorker.map(({ workerId, receipts, parcels }) => [
      workerNames.get(workerId ?? 0) ?? null,
      receipts,
      parcels,
    ]),
  );

  heading('How long it took, in milliseconds');
  const latencies = [
    ...evidence.waits.map((row) => ({ ...row, span: 'enqueued → claimed, without retries' })),
    ...evidence.totals.map((row) => ({ ...row, span: 'enqueued → ended, with retries' })),
  ];
  table(
    ['kind', 'from → to', 'jobs', 'p50', 'p95', 'p99', 'max'],
    latencies.map(({ kind, span, jobs, p50, p95, p99, max }) => [kind, span, jobs, p50, p95, p99, max]),
  );
}

/** The first order of each combination of states and attempts. */
function firstOfEachStory(orders: Evidence['orders']): Evidence['orders'] {
  const stories = new Map<string, Evidence['orders'][number]>();
  for (const row of orders) {
    const { receipt, parcel } = row;
    const story = [receipt?.state, receipt?.attempts, parcel?.state, parcel?.attempts].join();
    if (!stories.has(story)) stories.set(story, row);
  }
  return [...stories.values()];
}

/** Prints every number that must add up beside the one that was found. */
export function printChecks(checks: readonly Check[]): void {
  heading('Does it add up?');
  table(
    ['', 'what', 'expected', 'found'],
    checks.map((check) => [
      holds(check) ? styled('green', '✓') : styled('red', '✗'),
      check.what,
      check.expected,
      check.found,
    ]),
  );
}

/** Says in one sentence what was shown. Returns whether everything adds up. */
export function printVerdict(
  checks: readonly Check[],
  { orders, outcomes }: Evidence,
  declined: number,
): boolean {
  const wrong = checks.filter((check) => !holds(check)).length;
  console.log();
  if (wrong > 0) {
    console.log(styled(['red', 'bold'], `${wrong} of ${checks.length} numbers do not add up.`));
    return false;
  }
  const jobs = outcomes.reduce((sum, row) => sum + row.jobs, 0);
  const failures = outcomes.reduce((sum, row) => sum + row.failures, 0);
  console.log(
    styled(['green', 'bold'], 'Everything adds up: ') +
      `${orders.length} orders were committed with their ${jobs} jobs, ${declined} declined ones left nothing behind,\n` +
      `${failures} failed attempts were retried or discarded as planned, ` +
      'and every receipt and parcel is on record exactly once.',
  );
  return true;
}

import { redriveJobs } from '../../core/queries/operate/redrive-jobs.ts';
import type { Executor } from '../../core/sql/executor.ts';
import { parkWaiters } from './queries/park-waiters.ts';
import { reopenBatches } from './queries/reopen-batches.ts';
import type { TablesOfBatches } from './sql/batch-tables.ts';

/** The most jobs of one statement. */
const CHUNK = 1_000;

/**
 * Puts the discarded and cancelled jobs of a flow back, in one transaction: those that wait for none of them
 * are due, the others wait again. Returns how many.
 */
export async function redriveFlow(
  tx: Executor,
  tables: TablesOfBatches,
  flowId: number,
  channel: string | undefined,
): Promise<number> {
  const members = await reopenBatches(tx, tables, flowId);
  const wakeUp = channel === undefined ? undefined : { channel, queues: [], othersNotify: false };
  let redriven = 0;
  for (const state of ['discarded', 'cancelled'] as const) {
    for (let at = 0; at < members[state].length; at += CHUNK) {
      const ids = members[state].slice(at, at + CHUNK);
      redriven += (await redriveJobs(tx, tables, { state, ids }, wakeUp)).redriven;
    }
  }
  // Also without one: a job that was put back by itself may have opened its batch again.
  await parkWaiters(tx, tables, flowId);
  return redriven;
}

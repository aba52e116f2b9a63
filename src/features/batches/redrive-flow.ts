import { redriveJobs } from '../../core/queries/operate/redrive-jobs.ts';
import type { Executor } from '../../core/sql/executor.ts';
import { findToldMembers } from './queries/find-told-members.ts';
import { lockFlow } from './queries/lock-flow.ts';
import { type ParkWaiters, parkWaiters } from './queries/park-waiters.ts';
import { reopenBatches } from './queries/reopen-batches.ts';
import { spareMembers } from './queries/spare-members.ts';
import type { TablesOfBatches } from './sql/batch-tables.ts';
import { CHUNK } from './sql/chunk.ts';

export interface RedriveFlow extends Pick<ParkWaiters, 'flowId' | 'hasBegun'> {
  /** Where workers are notified; `undefined`: no notification is sent. */
  readonly channel: string | undefined;
}

/**
 * Puts the discarded and cancelled jobs of a flow back, in one transaction: those that wait for none of them
 * are due, the others wait again. Returns how many.
 */
export async function redriveFlow(
  tx: Executor,
  tables: TablesOfBatches,
  { flowId, channel, hasBegun }: RedriveFlow,
): Promise<number> {
  await lockFlow(tx, tables, flowId);
  const waited: number[] = [];
  for (const [queue, ids] of await findToldMembers(tx, tables, flowId)) {
    waited.push(...(await spareMembers(tx, tables, { queue, ids })));
  }
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
  const unbegun = [...members.discarded, ...members.cancelled, ...waited];
  await parkWaiters(tx, tables, { flowId, unbegun, hasBegun });
  return redriven;
}

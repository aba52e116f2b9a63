import { Doubling } from '../../core/time/doubling.ts';
import { sleep } from '../../core/time/sleep.ts';
import { QueueError } from '../../errors.ts';
import type { FlowRecord } from './queries/find-flow.ts';

/**
 * Asks until a flow has ended.
 *
 * @throws QueueError when there is no such flow, or the time is over
 */
export async function waitForFlow(
  ask: () => Promise<FlowRecord | undefined>,
  id: number,
  timeoutMs: number,
): Promise<FlowRecord> {
  const over = AbortSignal.timeout(timeoutMs);
  for (const rests = new Doubling(10, 500); ; ) {
    const flow = await ask();
    if (flow === undefined) throw new QueueError(`waitForFlow: there is no flow ${id}`);
    if (flow.endedAt !== null) return flow;
    if (over.aborted) {
      throw new QueueError(`Flow ${id} has not ended within ${timeoutMs} ms: ${flow.pending} jobs are left`);
    }
    await sleep(rests.next(), over);
  }
}

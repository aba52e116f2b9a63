import { sleep } from '../../core/time/sleep.ts';
import { QueueError } from '../../errors.ts';
import type { FlowRecord } from './queries/find-flow.ts';

const FIRST_LOOK_MS = 10;
const MAX_LOOK_MS = 500;

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
  for (let restMs = FIRST_LOOK_MS; ; restMs = Math.min(restMs * 2, MAX_LOOK_MS)) {
    const flow = await ask();
    if (flow === undefined) throw new QueueError(`There is no flow ${id}`);
    if (flow.endedAt !== null) return flow;
    if (over.aborted) {
      throw new QueueError(`Flow ${id} has not ended within ${timeoutMs} ms: ${flow.pending} jobs are left`);
    }
    await sleep(restMs, over);
  }
}

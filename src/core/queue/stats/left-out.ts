import type { Crew } from '../../queries/operate/find-crews.ts';
import type { PassedOver } from '../../queries/operate/find-passed-over.ts';
import { workersOf } from './workers-of.ts';

/** Jobs of one queue that its workers leave out, and what to say about them. */
export interface LeftOut {
  readonly queue: string;
  readonly kind?: string;
  readonly count: number;
  readonly message: string;
  readonly fix: string;
}

const MINUTE_MS = 60_000;

/**
 * Which jobs workers leave out, because the database refuses their claims. What is parked is certain.
 * A due job that was overtaken, or that waits in a queue whose workers do nothing, may also be locked by a
 * transaction of the app. In queues with limits it may wait for these.
 *
 * @param isExcused whether jobs of a queue may wait: it is paused, or has limits
 */
export function leftOut(
  found: readonly PassedOver[],
  crews: readonly Crew[],
  isExcused: (queue: string) => boolean,
): LeftOut[] {
  const all: LeftOut[] = [];
  const served = new Set(found.filter(({ isServed }) => isServed).map(({ queue }) => queue));
  for (const { queue, parked, parkedId, head, isOvertaken } of found) {
    if (parked > 0) {
      all.push({
        queue,
        count: parked,
        message:
          parked === 1
            ? `1 job of '${queue}' is parked because the database refused its claim: job ${parkedId}`
            : `${parked} jobs of '${queue}' are parked because the database refused their claims; ` +
              `the first is job ${parkedId}`,
        fix:
          `Read ${parked === 1 ? 'its last error' : 'their last errors'}, repair the rows or the trigger, ` +
          'then call queue.runNow(db, id).',
      });
    }
    if (head === undefined || head.dueMs < MINUTE_MS || isExcused(queue)) continue;
    if (workersOf(crews, queue, head.kind) === 0 || !(isOvertaken || !served.has(queue))) continue;
    const minutes = Math.round(head.dueMs / MINUTE_MS);
    all.push({
      queue,
      kind: head.kind,
      count: 1,
      message:
        `Workers of '${queue}' skip job ${head.id} ('${head.kind}'), which has been due for ` +
        `${minutes} minutes: the database refuses its claim, or a transaction has locked its row`,
      fix:
        "Look for the job in the workers' errors: a constraint that is not valid, or a trigger, rejects " +
        'its row. Repair the row or cancel the job; it then runs within a minute.',
    });
  }
  return all;
}

import type { QueueKeys } from '../../core/queue/queue-features.ts';
import type { ControlTables } from '../control/index.ts';

/**
 * The rules for keys of a queue. Their code is loaded when one is first used: most apps never use one.
 *
 * @param keys the table of the keys that outlive a job, for rules that need it
 */
export function keysOfQueue(keys: ControlTables['queueKeys'] | undefined): QueueKeys {
  return {
    table: keys,
    inserting: async (jobs, queue) =>
      (await import('./enqueue-by-rule.ts')).insertingByRule(jobs, { ...queue, keys }),
  };
}

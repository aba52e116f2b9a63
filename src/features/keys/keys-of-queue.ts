import type { QueueKeys } from '../../core/queue/queue-features.ts';
import type { ControlTables } from '../control/index.ts';

/**
 * The rules for keys of a queue. Each loads its code when it is first used: most apps never use one.
 *
 * @param keys the table of the keys that outlive a job, for rules that need it
 */
export function keysOfQueue(keys: ControlTables['queueKeys'] | undefined): QueueKeys {
  return {
    table: keys,
    async inserting(jobs, { tables, wakeUps }) {
      const { enqueueByRule, sharedRule } = await import('./enqueue-by-rule.ts');
      const settings = { tables, keys, wakeUps };
      const rule = sharedRule(jobs, settings);
      return (db, jobs) => enqueueByRule(db, settings, rule, jobs);
    },
    toCheck: keys && {
      tables: [keys],
      async missing() {
        const { missingKeys } = await import('./missing-keys.ts');
        return missingKeys(keys);
      },
    },
  };
}

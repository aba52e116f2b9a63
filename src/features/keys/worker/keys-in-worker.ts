import type { BackgroundFeature } from '../../../core/worker/background-feature.ts';
import { firstPruneWithinMs, Pruning } from '../../../core/worker/upkeep/prune.ts';
import { CONTROL_ENTRY } from '../../control/control-entry.ts';
import type { ControlTables } from '../../control/index.ts';
import { pruneKeys } from '../queries/prune-keys.ts';

/** What a worker does for the keys that outlive a job: it prunes those whose time has passed. */
export function keysInWorker(queueKeys: ControlTables['queueKeys']): BackgroundFeature {
  return {
    tables: {
      tables: { queueKeys },
      entry: CONTROL_ENTRY,
      // To lock a row takes the right to update it.
      privileges: { queueKeys: ['select', 'update', 'delete'] },
    },
    forWorker({ statements, tables, events, until }) {
      const upkeep = statements.of('upkeep');
      const pruning = new Pruning({
        prune: (limit) => pruneKeys(upkeep, { tables, keys: queueKeys }, limit),
        what: 'keys',
        firstWithinMs: firstPruneWithinMs(until),
        events,
      });
      return { background: [pruning] };
    },
  };
}

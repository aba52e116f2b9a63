import type { LimitsQuestion } from '../../core/queue/check/check-queue.ts';
import type { Finding } from '../../core/queue/check/finding.ts';
import { findStoppedGroups } from './queries/find-stopped-groups.ts';
import { type DeclaredQueueLimits, isGrouped } from './settings/limit-settings.ts';
import type { LimitTables } from './sql/limit-tables.ts';

/** What is wrong where a queue on Citus has groups. */
export function groupsOnCitus(queue: string): string {
  return (
    `The limits of the queue '${queue}' put its jobs into groups, ` +
    'and Citus refuses the statements that claim from groups'
  );
}

/** What helps then. */
export const WITHOUT_GROUPS =
  'Leave groups out of these limits, or keep the tables of the queue in PostgreSQL without Citus';

/** What `queue.check` finds about limits whose tables are there. */
export async function checkLimits(
  { db, tables, onCitus, mayAsk }: LimitsQuestion,
  { queueHolds }: LimitTables,
  declared: ReadonlyMap<string, DeclaredQueueLimits>,
): Promise<Finding[]> {
  const grouped = [...declared].filter(([, limits]) => isGrouped(limits));
  const refused = (onCitus ? grouped : []).map(
    ([queue]): Finding => ({
      code: 'groups-on-citus',
      severity: 'error',
      queue,
      message: groupsOnCitus(queue),
      fix: WITHOUT_GROUPS,
    }),
  );
  if (!mayAsk(queueHolds, [queueHolds.queue, queueHolds.groupKey, queueHolds.until])) return refused;
  // Under limits that let groups go on after a discarded job, stopped groups would be a surprise.
  const goingOn = grouped.filter(([, { groups }]) => groups?.serial !== 'success').map(([queue]) => queue);
  const stopped = await findStoppedGroups(db, { ...tables, queueHolds }, goingOn);
  return [
    ...refused,
    ...stopped.map(
      ({ queue, groups, first }): Finding => ({
        code: 'groups-stopped',
        severity: 'warning',
        queue,
        message:
          `${groups} groups of '${queue}' are stopped by discarded jobs (the first group is '${first}') ` +
          "because of limits with serial: 'success', which are no longer declared here",
        fix:
          'Redrive those jobs, or unblock each of the groups: ' +
          `queue.limits.unblock(db, { queue: '${queue}', group })`,
      }),
    ),
  ];
}

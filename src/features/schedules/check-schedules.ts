import { getTableConfig } from 'drizzle-orm/pg-core';
import type { FeatureQuestion } from '../../core/queue/check/feature-to-check.ts';
import type { Finding } from '../../core/queue/check/finding.ts';
import { findSchedules } from './queries/find-schedules.ts';
import type { ScheduleTables } from './sql/schedule-tables.ts';

const MAX_SCHEDULES = 1_000;

/**
 * Which schedules have ticks to come, and jobs that no registered worker has a handler for. One that was set
 * is not even fired then, so no due job tells of it.
 */
export async function checkSchedules(
  { db, isServed, mayAsk }: FeatureQuestion,
  tables: ScheduleTables,
): Promise<Finding[]> {
  const { queueSchedules } = tables;
  if (!mayAsk(queueSchedules, getTableConfig(queueSchedules).columns)) return [];
  const schedules = await findSchedules(db, tables, { limit: MAX_SCHEDULES });
  return schedules
    .filter(({ pausedAtMs, nextAtMs }) => pausedAtMs === null && nextAtMs !== null)
    .filter(({ queue, kind }) => !isServed(queue, kind))
    .map(({ name, queue, kind, declared }) => ({
      code: 'kind-unserved',
      severity: 'warning',
      queue,
      kind,
      message:
        `The schedule '${name}' is for jobs of the kind '${kind}' in '${queue}', and no worker that serves ` +
        `the queue has a handler for it${declared ? '' : '. It fires only where another worker has one'}`,
      fix: `Give a worker of '${queue}' a handler of '${kind}', or remove or pause the schedule`,
    }));
}

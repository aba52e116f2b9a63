import { is } from 'drizzle-orm';
import { PgTable } from 'drizzle-orm/pg-core';
import type { Limits, Queue, Schedules, Workflows } from '../../index.ts';

/** All tables that a queue was given, those of control, metrics and workflows included. */
export function tablesOf(
  queue: Pick<Queue, 'tables' | 'limits' | 'schedules' | 'keys' | 'metrics' | 'workflows'>,
): PgTable[] {
  // `createQueue` has put them there, or nothing.
  const limits = queue.limits as Limits | undefined;
  const schedules = queue.schedules as Schedules | undefined;
  const workflows = queue.workflows as Workflows | undefined;
  const all = {
    ...queue.tables,
    ...limits?.tables,
    ...schedules?.tables,
    ...workflows?.tables,
    queueKeys: queue.keys,
    queueMetrics: queue.metrics,
  };
  return Object.values<unknown>(all).filter((table) => is(table, PgTable));
}

import { is } from 'drizzle-orm';
import { PgTable } from 'drizzle-orm/pg-core';
import * as core from '../../../core/schema/index.ts';
import * as control from '../../../features/control/index.ts';
import * as metrics from '../../../features/metrics/schema/index.ts';
import * as workflows from '../../../features/workflows/schema/index.ts';
import { loadModule } from './load-module.ts';

const { queueJobs, queueResults, queueWorkers, queuePauses } = core;
const { queueSchedules, queueLimits, queueUsage, queueGroups, queueHolds, queueNotes, queueKeys } = control;
const { queueMetrics } = metrics;
const { queueSteps, queueMailboxes, queueBatches, queueWaits, queueTallies } = workflows;

/** All tables that a queue may have, under their usual names. */
export const USUAL_TABLES = {
  queueJobs,
  queueResults,
  queueWorkers,
  queuePauses,
  queueSchedules,
  queueLimits,
  queueUsage,
  queueGroups,
  queueHolds,
  queueNotes,
  queueKeys,
  queueMetrics,
  queueSteps,
  queueMailboxes,
  queueBatches,
  queueWaits,
  queueTallies,
};

export type FoundTables = typeof USUAL_TABLES;

/**
 * The tables of a queue that an app's schema exports, by the names that the guides give them; the usual ones
 * in place of those that it does not export.
 */
export async function exportedTables(files: readonly string[]): Promise<FoundTables> {
  const found: Record<string, unknown> = { ...USUAL_TABLES };
  for (const file of files) {
    const exports = await loadModule(file);
    for (const name of Object.keys(USUAL_TABLES)) {
      if (is(exports[name], PgTable)) found[name] = exports[name];
    }
  }
  return found as unknown as FoundTables; // Every name was there from the start.
}

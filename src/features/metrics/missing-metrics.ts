import type { PgTable } from 'drizzle-orm/pg-core';
import { type Finding, MIGRATE } from '../../core/queue/check/finding.ts';
import { quotedName } from '../../core/sql/quoted-name.ts';
import { METRICS_ENTRY } from './sql/metrics-entry.ts';

/** That the table of `createQueue({ metrics })` is not there. */
export function missingMetrics(metrics: PgTable): Finding {
  return {
    code: 'tables-missing',
    severity: 'error',
    message: `${quotedName(metrics)} does not exist, so workers of this queue do not start`,
    fix:
      `${MIGRATE}. If there is nothing to generate, the schema file that drizzle-kit reads must have ` +
      `\`export * from '${METRICS_ENTRY}'\` at its top level, or what createMetricsTables() returns`,
  };
}

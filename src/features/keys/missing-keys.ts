import type { PgTable } from 'drizzle-orm/pg-core';
import { type Finding, MIGRATE } from '../../core/queue/check/finding.ts';
import { quotedName } from '../../core/sql/quoted-name.ts';
import { CONTROL_ENTRY } from '../control/control-entry.ts';

/** That the table of `createQueue({ keys })` is not there. */
export function missingKeys(keys: PgTable): Finding {
  return {
    code: 'tables-missing',
    severity: 'error',
    message: `${quotedName(keys)} does not exist, so enqueue with throttle or unique: { forMs } fails`,
    fix:
      `${MIGRATE}. If there is nothing to generate, the schema file that drizzle-kit reads must have ` +
      `\`export * from '${CONTROL_ENTRY}'\` at its top level, or what createControlTables() returns`,
  };
}

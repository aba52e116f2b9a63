import type { PgTable } from 'drizzle-orm/pg-core';
import type { FeatureToCheck } from '../../core/queue/check/feature-to-check.ts';
import type { Finding } from '../../core/queue/check/finding.ts';
import { quotedName } from '../../core/sql/quoted-name.ts';
import { WITHOUT_WORKFLOWS, WORKFLOWS_ON_CITUS } from './on-citus.ts';
import { WORKFLOWS_ENTRY } from './sql/workflow-tables.ts';

/** What `queue.check` looks for where the queue has workflows. */
export function workflowsToCheck(tables: object): FeatureToCheck {
  return {
    tables: Object.values(tables),
    missing: missingWorkflows,
    onCitus: {
      code: 'workflows-on-citus',
      severity: 'error',
      message: WORKFLOWS_ON_CITUS,
      fix: WITHOUT_WORKFLOWS,
    },
  };
}

function missingWorkflows(absent: readonly PgTable[]): Finding {
  const names = absent.map(quotedName).join(', ');
  return {
    code: 'tables-missing',
    severity: 'error',
    message: `${names} ${absent.length === 1 ? 'does' : 'do'} not exist, so no workflow can run`,
    fix:
      'Run `npx drizzle-kit generate` and `npx drizzle-kit migrate`. If there is nothing to generate, ' +
      'the schema file that drizzle-kit reads must have ' +
      `\`export * from '${WORKFLOWS_ENTRY}'\` at its top level`,
  };
}

import type { FeatureToCheck } from '../../core/queue/check/feature-to-check.ts';
import { WITHOUT_WORKFLOWS, WORKFLOWS_ON_CITUS } from './on-citus.ts';
import { WORKFLOWS_ENTRY } from './sql/workflow-tables.ts';

export function workflowsToCheck(tables: object): FeatureToCheck {
  return {
    tables: Object.values(tables),
    without: 'no workflow can run',
    entry: WORKFLOWS_ENTRY,
    onCitus: {
      code: 'workflows-on-citus',
      severity: 'error',
      message: WORKFLOWS_ON_CITUS,
      fix: WITHOUT_WORKFLOWS,
    },
  };
}

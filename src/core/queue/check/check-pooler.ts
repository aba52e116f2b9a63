import { isPooledByTransaction } from '../../drivers/pooled-by-transaction.ts';
import type { Executor } from '../../sql/executor.ts';
import type { Finding } from './finding.ts';

/** What workers lack behind a pooler that gives each transaction another connection. */
export async function checkPooler(db: Executor): Promise<Finding[]> {
  if (!(await isPooledByTransaction(db))) return [];
  return [
    {
      code: 'pooled-by-transaction',
      severity: 'hint',
      message:
        'A pooler in transaction mode stands before this server: no wake-up and no session lock passes it, ' +
        'so workers poll, and others know after silentMs (30 s) that one has died',
      fix:
        'Nothing for an app that only enqueues. Give workers the direct connection, or listen: false, ' +
        'and on postgres.js prepare: false',
    },
  ];
}

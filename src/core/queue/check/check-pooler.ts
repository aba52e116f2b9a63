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
        'You connect through a transaction-mode pooler. NOTIFY and session locks do not work through it, ' +
        'so workers poll, and a dead worker is noticed only after silentMs (30 s)',
      fix:
        'An app that only enqueues needs no change. Give workers a direct connection, or set ' +
        'listen: false, and on postgres.js also prepare: false',
    },
  ];
}

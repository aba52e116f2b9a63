import { isSingleClient, POOL } from '../../drivers/single-connection.ts';
import type { Executor } from '../../sql/executor.ts';
import type { Finding } from './finding.ts';

/** Whether this database is a single client, which workers refuse. */
export function checkConnection(db: Executor): Finding[] {
  if (!isSingleClient(db)) return [];
  return [
    {
      code: 'single-connection',
      severity: 'warning',
      message:
        'This database is a single client. Every statement that is sent while a transaction is open ' +
        'becomes part of that transaction, so createWorker and drain refuse this database',
      fix: `Use a connection pool: ${POOL}`,
    },
  ];
}

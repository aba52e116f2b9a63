import { beforeAll, beforeEach } from 'vitest';
import { emptyTables } from '../../support/empty-tables.ts';
import { type UsedTestDatabase, useTestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';

/**
 * A database on a server that has been up for a while. One that has just been started has ended everybody's sessions,
 * so a free lock says nothing yet, and no worker is declared gone for it.
 */
export function useSettledDatabase(): UsedTestDatabase {
  const database = useTestDatabase({ max: 4 });
  beforeAll(async () => {
    await until(async () => {
      const [row] = await database.client`
        select pg_postmaster_start_time() < clock_timestamp() - interval '11 s' as up`;
      return row?.up;
    });
  });
  beforeEach(async () => {
    await emptyTables(database.client, 'queue_jobs', 'queue_results', 'queue_workers');
  });
  return database;
}

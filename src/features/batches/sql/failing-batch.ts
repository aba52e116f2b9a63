import { type SQL, sql } from 'drizzle-orm';
import type { TablesOfBatches } from './batch-tables.ts';

/**
 * Whether a member of the batch `b` has failed. One that was put back counts until a fold has counted its
 * return, so a batch with such a return is none: the next look tells.
 */
export function isFailing({ queueTallies }: Pick<TablesOfBatches, 'queueTallies'>): SQL {
  return sql`b.failed > 0
        and not exists (select from ${queueTallies} as t where t.batch_id = b.id and t.failed < 0)`;
}

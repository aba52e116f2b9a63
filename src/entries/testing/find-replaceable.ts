import { sql } from 'drizzle-orm';
import type { QueueTables } from '../../core/schema/index.ts';
import type { Executor } from '../../index.ts';
import { queryRows } from '../../internal.ts';
import type { HeldJob } from '../../testing-face.ts';
import { writtenHere } from './written-here.ts';

/** The jobs that a debounce or a `replace` would find now. It would give them a new fence. */
export async function findReplaceable(
  db: Executor,
  tables: QueueTables,
  written: boolean,
): Promise<HeldJob[]> {
  const rows = await queryRows(
    db,
    tables,
    sql`select j.id, j.fence from ${tables.queueJobs} as j
      where j.waiting_key is not null${written ? sql` and ${writtenHere('j')}` : sql``}`,
  );
  return rows.map(({ id, fence }) => ({ id: Number(id), fence: Number(fence) }));
}

import { findCrews } from '../../queries/operate/find-crews.ts';
import { findPassedOver } from '../../queries/operate/find-passed-over.ts';
import { findPassedOverInShards } from '../../queries/operate/find-passed-over-in-shards.ts';
import { findPauses } from '../../queries/operate/find-pauses.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Executor } from '../../sql/executor.ts';
import { hasTransactions, withinTime } from '../../sql/within-time.ts';
import { leftOut } from '../stats/left-out.ts';
import type { Finding } from './finding.ts';

const MAX_BANDS = 1_000;
/** As for kinds that are not served. */
const LIMIT_MS = 2_000;

/** Jobs that workers leave out, because the database refuses their claims. */
export async function refusedClaims(
  db: Executor,
  tables: QueueTables,
  { onCitus, isLimited }: { readonly onCitus: boolean; readonly isLimited: (queue: string) => boolean },
): Promise<Finding[]> {
  const look = onCitus ? findPassedOverInShards : findPassedOver;
  const crews = await findCrews(db, tables);
  const paused = new Set((await findPauses(db, tables)).map(({ queue }) => queue));
  const found = hasTransactions(db)
    ? await withinTime(db, tables, LIMIT_MS, ({ runner }) => look(runner, tables, MAX_BANDS))
    : await look(db, tables, MAX_BANDS);
  return leftOut(found ?? [], crews, (queue) => paused.has(queue) || isLimited(queue)).map(
    ({ message, fix }) => ({ code: 'claims-refused', severity: 'warning', message, fix }),
  );
}

import { findPassedOver } from '../../queries/operate/find-passed-over.ts';
import { findPassedOverInShards } from '../../queries/operate/find-passed-over-in-shards.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import { leftOut } from '../stats/left-out.ts';
import type { Finding } from './finding.ts';
import type { KnownQueues } from './unserved-kinds.ts';

const MAX_BANDS = 1_000;

/** Jobs that workers leave out, because the database refuses their claims. */
export async function refusedClaims(
  db: Runner,
  tables: QueueTables,
  { onCitus, crews, paused, isLimited }: KnownQueues & { readonly isLimited: (queue: string) => boolean },
): Promise<Finding[]> {
  const look = onCitus ? findPassedOverInShards : findPassedOver;
  const { bands, areAll } = await look(db, tables, MAX_BANDS);
  const findings: Finding[] = leftOut(bands, crews, (queue) => paused.has(queue) || isLimited(queue)).map(
    ({ count, ...found }) => ({ code: 'claims-refused', severity: 'warning', ...found }),
  );
  if (!areAll) {
    findings.push({
      code: 'queues-unchecked',
      severity: 'hint',
      message: 'Too many queues to check all of them for jobs whose claims the database refuses',
      fix: "Look for such jobs in the workers' error events",
    });
  }
  return findings;
}

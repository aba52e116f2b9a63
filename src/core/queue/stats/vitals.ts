import { withinTime } from '../../drivers/within-time.ts';
import { findPassedOver } from '../../queries/operate/find-passed-over.ts';
import { findPassedOverInShards } from '../../queries/operate/find-passed-over-in-shards.ts';
import { findSilentWorkers } from '../../queries/operate/find-silent-workers.ts';
import { inspectVitals } from '../../queries/operate/inspect-vitals.ts';
import { isCitus } from '../../queries/presence/is-citus.ts';
import { type Database, sqlStateOf } from '../../sql/executor.ts';
import type { LiveFigures } from './count-live.ts';
import { judgeClaims } from './judge-claims.ts';
import { judgeKinds } from './judge-kinds.ts';
import { judgeQueues } from './judge-queues.ts';
import { judgeRates } from './judge-rates.ts';
import { judgeRetrying } from './judge-retrying.ts';
import { judgeServer } from './judge-server.ts';
import { judgeWorkers } from './judge-workers.ts';
import { figuresOf } from './known-figures.ts';
import type { QueueVitals, Vital } from './queue-vitals.ts';
import type { ServerFigures } from './server-figures.ts';
import { checkCanBegin, liveFigures, type QueueOfFigures, ratesOf } from './stats.ts';

const INSPECT_MS = 1_000;
/** As long as `frozenMs` is by default: any living worker would have declared such a worker gone. */
const SILENT_MS = 60_000;
/** The time over which rates are judged. */
const MINUTES = 15;
const INSUFFICIENT_PRIVILEGE = '42501';

/** So many priorities of queues are looked at. */
const MAX_BANDS = 1_000;

/** The worst first. */
const SEVERITIES: readonly Vital['severity'][] = ['error', 'warning', 'unknown', 'ok'];

/** See `Queue.vitals`. */
export async function vitals(
  db: Database,
  queue: QueueOfFigures,
  limits?: { has(queue: string): boolean },
): Promise<QueueVitals> {
  checkCanBegin(db);
  const live: LiveFigures = await liveFigures(db, queue);
  const rates = await ratesOf(db, queue, MINUTES);
  const inspected = await figuresOf(db, queue.tables).server.get(() => inspect(db, queue));
  const all = [
    ...judgeQueues(live),
    ...judgeKinds(live),
    ...judgeRates(rates, queue.reported !== undefined),
    ...judgeRetrying(live),
    ...judgeWorkers(live, inspected?.silent),
    ...judgeClaims(live, inspected?.passedOver, (name) => limits?.has(name) ?? false),
    ...judgeServer(inspected?.server),
  ].sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
  return { checkedAt: live.countedAt, severity: all[0]?.severity ?? 'ok', vitals: all };
}

/** `undefined` when it took too long, or this role may not look. */
async function inspect(db: Database, { tables }: QueueOfFigures): Promise<ServerFigures | undefined> {
  try {
    const read = await withinTime(db, tables, INSPECT_MS, async ({ runner }) => ({
      silent: await findSilentWorkers(runner, tables, SILENT_MS),
      server: await inspectVitals(runner, tables),
      look: (await isCitus(runner, tables)) ? findPassedOverInShards : findPassedOver,
    }));
    if (read === undefined) return undefined;
    const { look } = read;
    const passedOver = await withinTime(db, tables, INSPECT_MS, ({ runner }) =>
      look(runner, tables, MAX_BANDS),
    );
    return { ...read, passedOver };
  } catch (error) {
    if (sqlStateOf(error) === INSUFFICIENT_PRIVILEGE) return undefined;
    throw error;
  }
}

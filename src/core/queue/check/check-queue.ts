import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import { findCrews } from '../../queries/operate/find-crews.ts';
import { findServedQueues, hasGroups } from '../../queries/operate/find-grouped-queues.ts';
import { findSilentWorkers } from '../../queries/operate/find-silent-workers.ts';
import { inspectServer } from '../../queries/operate/inspect-server.ts';
import { inspectTable, type TableState } from '../../queries/operate/inspect-table.ts';
import { isCitus } from '../../queries/presence/is-citus.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, sqlStateOf } from '../../sql/executor.ts';
import { quotedName } from '../../sql/quoted-name.ts';
import { workersOf } from '../stats/workers-of.ts';
import { checkColumns } from './check-columns.ts';
import { checkConnection } from './check-connection.ts';
import { checkIds } from './check-ids.ts';
import { checkIndexes } from './check-indexes.ts';
import { checkPooler } from './check-pooler.ts';
import { missingTables } from './check-presence.ts';
import { checkServer } from './check-server.ts';
import { checkUpkeep } from './check-upkeep.ts';
import { type FeatureQuestion, type FeatureToCheck, tablesMissing } from './feature-to-check.ts';
import type { Finding } from './finding.ts';
import { refusedClaims } from './refused-claims.ts';
import { unservedKinds } from './unserved-kinds.ts';

/** Five times the default `frozenMs`: any living worker would have declared such a worker gone. */
const SILENT_MS = 300_000;

const INSUFFICIENT_PRIVILEGE = '42501';

/** What may be asked about limits, in a check. */
export interface LimitsQuestion {
  readonly db: Executor;
  readonly tables: QueueTables;
  readonly onCitus: boolean;
  /** Whether this role may read these columns, and they are there. */
  readonly mayAsk: (table: PgTable, asked: readonly PgColumn[]) => boolean;
}

/** Limits, as far as a check is about them. */
export interface LimitsToCheck {
  /** Whether the queue has limits. */
  has(queue: string): boolean;
  /** Whether the jobs of the queue are in groups. */
  isGrouped(queue: string): boolean;
  /** What is wrong with them, whatever of their tables is there. */
  check(question: LimitsQuestion): Promise<Finding[]>;
}

/** What a queue has beside its own tables. */
export interface FeaturesToCheck {
  /** All that have tables, the limits as well. */
  readonly features: readonly FeatureToCheck[];
  readonly limits: LimitsToCheck | undefined;
}

/**
 * What is wrong with the set-up of a queue's database, errors first. Reads the catalog and the workers' rows,
 * writes nothing, and takes no lock that anything waits for. Behind a pooler it takes two connections at once
 * of the app's pool, where they can be had.
 *
 * @throws only the driver's errors, when the database cannot be asked
 */
export async function checkQueue(
  db: Executor,
  tables: QueueTables,
  { features, limits }: FeaturesToCheck,
): Promise<Finding[]> {
  const server = await inspectServer(db, tables);
  const findings = [...checkServer(server), ...checkConnection(db), ...(await checkPooler(db))];
  const states = new Map<PgTable, TableState>();
  const all: PgTable[] = [...Object.values(tables), ...features.flatMap(({ tables }) => tables)];
  try {
    for (const table of all) states.set(table, await inspectTable(db, tables, table));
  } catch (error) {
    if (sqlStateOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    return [...findings, permissionDenied(error)];
  }
  const stateOf = (table: PgTable): TableState => {
    const state = states.get(table);
    if (state === undefined) throw new Error('every table of the queue was inspected');
    return state;
  };
  findings.push(...missingTables(tables, stateOf, server));
  for (const feature of features) {
    const absent = feature.tables.filter((table) => !stateOf(table).present);
    if (absent.length > 0) findings.push(tablesMissing(feature, absent));
  }
  for (const table of all.filter((table) => stateOf(table).present)) {
    findings.push(...checkColumns(table, stateOf(table)), ...checkIndexes(table, stateOf(table)));
  }
  findings.push(...checkUpkeep(tables, stateOf));
  // A web app's role may be unable to read the workers, and a missing column is already a finding.
  const { queueJobs, queueWorkers, queuePauses } = tables;
  const mayAsk = (table: PgTable, asked: readonly PgColumn[]) => {
    const { readable, columns } = stateOf(table);
    return readable && asked.every(({ name }) => columns.some((column) => column.name === name));
  };
  const onCitus = await isCitus(db, tables);
  const hasIds = stateOf(queueJobs).columns.some(({ name }) => name === queueJobs.id.name);
  if (onCitus) findings.push(...features.flatMap(({ onCitus: found }) => found ?? []));
  if (onCitus && hasIds) findings.push(...(await checkIds(db, tables)));
  if (mayAsk(queueWorkers, [queueWorkers.name, queueWorkers.seenAt, queueWorkers.queues])) {
    findings.push(...(await silentWorkers(db, tables)));
    const { id, queue, kind, groupKey, priority, runAt, workerId, attempt, errors } = queueJobs;
    const asked = [id, queue, kind, groupKey, priority, runAt, workerId];
    // There they are counted, with those that have killed workers.
    const counted = onCitus ? [attempt, errors] : [];
    const mayAskKinds =
      mayAsk(queueWorkers, [queueWorkers.kinds]) &&
      mayAsk(queuePauses, [queuePauses.queue, queuePauses.pausedAt]);
    if (mayAskKinds && mayAsk(queueJobs, [...asked, ...counted])) {
      findings.push(...(await unservedKinds(db, tables, { onCitus })));
      findings.push(...(await foundByFeatures(db, tables, features, mayAsk)));
      if (mayAsk(queueJobs, [errors])) {
        const isLimited = (name: string) => limits?.has(name) ?? false;
        findings.push(...(await refusedClaims(db, tables, { onCitus, isLimited })));
      }
    }
    if (mayAsk(queueJobs, [queueJobs.queue, queueJobs.groupKey])) {
      findings.push(...(await undeclaredGroups(db, tables, (queue) => limits?.isGrouped(queue) ?? false)));
    }
  }
  if (limits !== undefined) findings.push(...(await limits.check({ db, tables, onCitus, mayAsk })));
  const order = ['error', 'warning', 'hint'];
  return findings.sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}

/** Without any worker there is nothing to ask. */
async function foundByFeatures(
  db: Executor,
  tables: QueueTables,
  features: readonly FeatureToCheck[],
  mayAsk: FeatureQuestion['mayAsk'],
): Promise<Finding[]> {
  const asked = features.filter(({ check }) => check !== undefined);
  const crews = asked.length === 0 ? [] : await findCrews(db, tables);
  if (crews.length === 0) return [];
  const isServed = (queue: string, kind: string) => workersOf(crews, queue, kind) > 0;
  const found: Finding[] = [];
  for (const { check } of asked) found.push(...((await check?.({ db, isServed, mayAsk })) ?? []));
  return found;
}

function permissionDenied(error: unknown): Finding {
  let cause = error;
  while (cause instanceof Error && cause.cause instanceof Error) cause = cause.cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return {
    code: 'permission-denied',
    severity: 'error',
    message: `This role may not inspect the tables (${reason})`,
    fix:
      'grant usage on schema … to this role, and the privileges that the guide "Schema" lists under ' +
      '"Grants"',
  };
}

async function silentWorkers(db: Executor, tables: QueueTables): Promise<Finding[]> {
  const workers = await findSilentWorkers(db, tables, SILENT_MS);
  return workers.map(({ name, silentMs }) => ({
    code: 'worker-silent',
    severity: 'warning',
    message:
      `The worker '${name}' was last seen ${duration(silentMs)} ago, and no other has declared it gone: ` +
      'the jobs that it held are waiting',
    fix: 'Start a worker: it removes the row, and the jobs are due again',
  }));
}

/** A claim without groups sees no job that has one. */
async function undeclaredGroups(
  db: Executor,
  tables: QueueTables,
  isDeclared: (queue: string) => boolean,
): Promise<Finding[]> {
  const served = (await findServedQueues(db, tables)).filter((queue) => !isDeclared(queue));
  const findings: Finding[] = [];
  for (const queue of served) {
    if (!(await hasGroups(db, tables, queue))) continue;
    findings.push({
      code: 'groups-undeclared',
      severity: 'warning',
      message:
        `Jobs of '${queue}' are in groups, but this queue's limits declare no groups: ` +
        'a worker with these limits does not claim these jobs',
      fix:
        `Declare groups for '${queue}' with limitsIn here too. If no process does any more: update ` +
        `${quotedName(tables.queueJobs)} set group_key = null where queue = '${queue}' and worker_id is null`,
    });
  }
  return findings;
}

function duration(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 120) return `${minutes} minutes`;
  return minutes < 2_880 ? `${Math.round(minutes / 60)} hours` : `${Math.round(minutes / 1_440)} days`;
}

import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import { type Crew, findCrews } from '../../queries/operate/find-crews.ts';
import { findPauses } from '../../queries/operate/find-pauses.ts';
import { findServedQueues } from '../../queries/operate/find-served-queues.ts';
import { findSilentWorkers } from '../../queries/operate/find-silent-workers.ts';
import { hasGroups } from '../../queries/operate/has-groups.ts';
import { inspectServer } from '../../queries/operate/inspect-server.ts';
import { inspectTable, type TableState } from '../../queries/operate/inspect-table.ts';
import { isCitus } from '../../queries/presence/is-citus.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { causesOf } from '../../sql/causes-of.ts';
import { type Executor, sqlStateOf } from '../../sql/executor.ts';
import { quotedName } from '../../sql/quoted-name.ts';
import { workersOf } from '../stats/workers-of.ts';
import { BoundedLooks } from './bounded-looks.ts';
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

export interface LimitsQuestion {
  readonly db: Executor;
  readonly tables: QueueTables;
  readonly onCitus: boolean;
  /** Whether this role may read these columns, and they are there. */
  readonly mayAsk: (table: PgTable, asked: readonly PgColumn[]) => boolean;
}

/** Limits, as far as a check is about them. */
export interface LimitsToCheck {
  has(queue: string): boolean;
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

/** What is taken for granted of a table that could not be inspected in time. */
const NOT_READ: TableState = {
  present: true,
  readable: false,
  isHidden: false,
  columns: [],
  indexes: [],
  checks: [],
  partitionKeys: [],
  storage: [],
  otherSchemas: [],
};

/**
 * What is wrong with the set-up of a queue's database, errors first. Reads the catalog and the workers' rows,
 * writes nothing, and takes no lock that anything waits for. It waits for the locks of others for some
 * seconds at most, where the driver has transactions. Behind a pooler it takes two connections at once of the
 * app's pool, where they can be had.
 *
 * @throws only the driver's errors, when the database cannot be asked
 */
export async function checkQueue(
  db: Executor,
  tables: QueueTables,
  { features, limits }: FeaturesToCheck,
): Promise<Finding[]> {
  const server = await inspectServer(db, tables);
  const ofServer = checkServer(server);
  const findings = [...ofServer, ...checkConnection(db), ...(await checkPooler(db))];
  const looks = new BoundedLooks(db, tables, !ofServer.some(({ code }) => code === 'not-postgres'));
  const all: PgTable[] = [...Object.values(tables), ...features.flatMap(({ tables }) => tables)];
  let states: ReadonlyMap<PgTable, TableState>;
  try {
    states = await inspectTables(looks, tables, all);
  } catch (error) {
    if (sqlStateOf(error) !== INSUFFICIENT_PRIVILEGE) throw error;
    return [...findings, permissionDenied(error)];
  }
  const stateOf = (table: PgTable): TableState => states.get(table) ?? NOT_READ;
  findings.push(...missingTables(tables, stateOf, server));
  for (const feature of features) {
    const absent = feature.tables.filter((table) => !stateOf(table).present);
    if (absent.length > 0) findings.push(tablesMissing(feature, absent));
  }
  for (const [table, state] of states) {
    if (state.present) findings.push(...checkColumns(table, state), ...checkIndexes(table, state));
  }
  const hidden = all.filter((table) => stateOf(table).readable && stateOf(table).isHidden);
  if (hidden.length > 0) findings.push(policyMissing(hidden));
  findings.push(...checkUpkeep(tables, stateOf));
  findings.push(...(await checkRows(db, tables, { features, limits, looks, stateOf })));
  findings.push(...looks.timedOut());
  const order = ['error', 'warning', 'hint'];
  return findings.sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}

/** The tables that could be inspected in time. */
async function inspectTables(
  looks: BoundedLooks,
  tables: QueueTables,
  all: readonly PgTable[],
): Promise<ReadonlyMap<PgTable, TableState>> {
  const states = new Map<PgTable, TableState>();
  let left = all;
  while (left.length > 0) {
    await looks.take('the catalog', async (runner) => {
      for (const table of left) states.set(table, await inspectTable(runner, tables, table));
    });
    // Passes over the one that took too long.
    left = left.filter((table) => !states.has(table)).slice(1);
  }
  return states;
}

interface RowsToCheck extends FeaturesToCheck {
  readonly looks: BoundedLooks;
  readonly stateOf: (table: PgTable) => TableState;
}

/** What the rows of workers and jobs tell. */
async function checkRows(
  db: Executor,
  tables: QueueTables,
  { features, limits, looks, stateOf }: RowsToCheck,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  const found = (some: readonly Finding[] | undefined) => findings.push(...(some ?? []));
  // A web app's role may be unable to read the workers, and a missing column is already a finding.
  const { queueJobs, queueWorkers, queuePauses } = tables;
  const mayAsk = (table: PgTable, asked: readonly PgColumn[]) => {
    const { readable, columns } = stateOf(table);
    return readable && asked.every(({ name }) => columns.some((column) => column.name === name));
  };
  const onCitus = await isCitus(db, tables);
  const hasIds = stateOf(queueJobs).columns.some(({ name }) => name === queueJobs.id.name);
  if (onCitus) found(features.flatMap(({ onCitus: refused }) => refused ?? []));
  if (onCitus && hasIds) found(await looks.take('the ids', (runner) => checkIds(runner, tables)));
  if (mayAsk(queueWorkers, [queueWorkers.name, queueWorkers.seenAt, queueWorkers.queues])) {
    found(await looks.take('silent workers', (runner) => silentWorkers(runner, tables)));
    const { id, queue, kind, groupKey, priority, runAt, workerId, attempt, errors } = queueJobs;
    const asked = [id, queue, kind, groupKey, priority, runAt, workerId];
    // There they are counted, with those that have killed workers.
    const counted = onCitus ? [attempt, errors] : [];
    const mayAskKinds =
      mayAsk(queueWorkers, [queueWorkers.kinds]) &&
      mayAsk(queuePauses, [queuePauses.queue, queuePauses.pausedAt]);
    const crews = mayAskKinds
      ? await looks.take('workers', (runner) => findCrews(runner, tables))
      : undefined;
    const pauses = mayAskKinds
      ? await looks.take('pauses', (runner) => findPauses(runner, tables))
      : undefined;
    if (crews !== undefined && pauses !== undefined && mayAsk(queueJobs, [...asked, ...counted])) {
      const known = { onCitus, crews, paused: new Set(pauses.map((pause) => pause.queue)) };
      found(await looks.take('unserved kinds', (runner) => unservedKinds(runner, tables, known)));
      const ofFeatures = { features, crews, mayAsk };
      found(await looks.take('schedules', (runner) => foundByFeatures(runner, ofFeatures)));
      if (mayAsk(queueJobs, [errors])) {
        const isLimited = (name: string) => limits?.has(name) ?? false;
        found(
          await looks.take('refused claims', (runner) =>
            refusedClaims(runner, tables, { ...known, isLimited }),
          ),
        );
      }
    }
    if (mayAsk(queueJobs, [queueJobs.queue, queueJobs.groupKey])) {
      const isDeclared = (queue: string) => limits?.isGrouped(queue) ?? false;
      found(await looks.take('groups', (runner) => undeclaredGroups(runner, tables, isDeclared)));
    }
  }
  if (limits !== undefined) {
    const question = { tables, onCitus, mayAsk };
    found(await looks.take('limits', (runner) => limits.check({ ...question, db: runner })));
  }
  return findings;
}

/** Without any worker there is nothing to ask. */
async function foundByFeatures(
  db: Executor,
  {
    features,
    crews,
    mayAsk,
  }: Pick<FeaturesToCheck, 'features'> &
    Pick<FeatureQuestion, 'mayAsk'> & { readonly crews: readonly Crew[] },
): Promise<Finding[]> {
  if (crews.length === 0) return [];
  const isServed = (queue: string, kind: string) => workersOf(crews, queue, kind) > 0;
  const found: Finding[] = [];
  for (const { check } of features) found.push(...((await check?.({ db, isServed, mayAsk })) ?? []));
  return found;
}

/** Statements of a role without a policy do not fail: they find nothing. */
function policyMissing(hidden: readonly PgTable[]): Finding {
  const names = hidden.map(quotedName);
  return {
    code: 'policy-missing',
    severity: 'warning',
    message:
      `Row-level security hides all rows of ${names.join(', ')} from this role: no policy is for it. ` +
      'A worker of this role starts and finds no job',
    fix:
      `As the owner of the tables: create policy worker on ${names[0]} to … using (true)` +
      (names.length === 1 ? '' : ', and on the others likewise') +
      '. See the guide "Schema", "Row-level security"',
  };
}

function permissionDenied(error: unknown): Finding {
  const reason = causesOf(error).at(-1)?.message ?? String(error);
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
    worker: name,
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
      queue,
      message:
        `Jobs of '${queue}' are in groups, but this queue's limits declare no groups: ` +
        'a worker with these limits does not claim these jobs',
      fix:
        `Declare groups for '${queue}' with limitsIn here too. If no process does any more: update ` +
        `${quotedName(tables.queueJobs)} set group_key = null where queue = '${queue}' and ` +
        `(worker_id is null or worker_id not in (select id from ${quotedName(tables.queueWorkers)}))`,
    });
  }
  return findings;
}

function duration(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 120) return `${minutes} minutes`;
  return minutes < 2_880 ? `${Math.round(minutes / 60)} hours` : `${Math.round(minutes / 1_440)} days`;
}

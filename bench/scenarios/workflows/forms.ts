import postgres, { type Sql } from 'postgres';
import { workflowsStatements } from '../../../test/support/control-tables.ts';
import { createOrders } from '../../child/orders.ts';
import type { EngineName } from '../../child/workflows.ts';
import { createTables } from '../../systems/drizzle-queue/system.ts';

/** Workflows of ours or of a peer, set up in one particular way. */
export interface Form {
  readonly name: string;
  readonly setup: string;
  readonly engine: EngineName;
  readonly options: unknown;
  /** Whether the process starts each workflow and waits for it, or works off a backlog. */
  readonly mode: 'started' | 'queued';
  /** Creates its tables, and the app's. */
  create(url: string): Promise<void>;
  /** Whether a workflow is neither done nor waits. */
  anyLeft(sql: Sql): Promise<boolean>;
  /** How many wait for a signal or a time. */
  countWaiting(sql: Sql): Promise<number>;
}

type Tables = Pick<Form, 'engine' | 'create' | 'anyLeft' | 'countWaiting'>;

async function addOrders(url: string, more: readonly string[] = []): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  for (const statement of [createOrders, ...more]) await sql.unsafe(statement);
  await sql.end();
}

const own: Tables = {
  engine: 'drizzle-queue',
  async create(url) {
    await createTables(url);
    await addOrders(url, await workflowsStatements());
  },
  async anyLeft(sql) {
    const [row] = await sql<{ left: boolean }[]>`
      select exists (
        select from queue_jobs where worker_id is not null or run_at <= now()) as left /* bench */`;
    return row?.left ?? false;
  },
  async countWaiting(sql) {
    const [row] = await sql<{ count: number }[]>`
      select count(*)::int4 as count from queue_jobs where worker_id is null and run_at > now() /* bench */`;
    return row?.count ?? 0;
  },
};

const dbos: Tables = {
  engine: 'dbos',
  async create(url) {
    const { DBOS } = await import('dbos-sdk-5');
    await addOrders(url);
    await DBOS.migrate(url);
  },
  async anyLeft(sql) {
    const [row] = await sql<{ left: boolean }[]>`
      select exists (
        select from dbos.workflow_status where status in ('ENQUEUED', 'PENDING')) as left /* bench */`;
    return row?.left ?? false;
  },
  async countWaiting(sql) {
    // Each wait is recorded with its end before it begins.
    const [row] = await sql<{ count: number }[]>`
      select count(*)::int4 as count from dbos.operation_outputs
      where function_name = 'DBOS.sleep' /* bench */`;
    return row?.count ?? 0;
  },
};

const openWorkflow: Tables = {
  engine: 'openworkflow',
  async create(url) {
    const { BackendPostgres } = await import('openworkflow/postgres');
    await addOrders(url);
    const backend = await BackendPostgres.connect(url);
    await backend.stop();
  },
  async anyLeft(sql) {
    const [row] = await sql<{ left: boolean }[]>`
      select exists (
        select from openworkflow.workflow_runs
        where status = 'pending' or status = 'running' and worker_id is not null) as left /* bench */`;
    return row?.left ?? false;
  },
  async countWaiting(sql) {
    const [row] = await sql<{ count: number }[]>`
      select count(*)::int4 as count from openworkflow.workflow_runs
      where status = 'running' and worker_id is null
        and available_at > now() + interval '1 hour' /* bench */`;
    return row?.count ?? 0;
  },
};

const OWN_POOL = 20;
const PEER_POOL = 40;
const ownSetup =
  `createWorker with the concurrency of the row, a pool of ${OWN_POOL}, everything else by default; ` +
  'the storage parameters of docs/schema.md; results are kept';
const dbosSetup = `systemDatabasePoolSize ${PEER_POOL}, no tracing, logLevel error, a fixed applicationVersion`;

export const ownStarted: Form = {
  ...own,
  name: 'drizzle-queue, started',
  mode: 'started',
  setup: `${ownSetup}. The process enqueues each job alone, and waits until it is completed`,
  options: { driver: 'postgres.js', poolSize: OWN_POOL },
};
export const ownQueued: Form = {
  ...own,
  name: 'drizzle-queue, queued',
  mode: 'queued',
  setup: ownSetup,
  options: { driver: 'postgres.js', poolSize: OWN_POOL },
};
/** The driver that DBOS uses, too: fewer round trips where a statement is not prepared. */
function onNodePostgres(form: Form): Form {
  return {
    ...form,
    name: `${form.name}, node-postgres`,
    setup: `${form.setup}. Over node-postgres`,
    options: { driver: 'node-postgres', poolSize: OWN_POOL },
  };
}
export const startedOnNodePostgres = onNodePostgres(ownStarted);
export const queuedOnNodePostgres = onNodePostgres(ownQueued);
export const dbosDirect: Form = {
  ...dbos,
  name: 'DBOS, direct',
  mode: 'started',
  setup: `startWorkflow without a queue, the live handles are awaited; ${dbosSetup}`,
  options: { poolSize: PEER_POOL },
};

function dbosQueued(name: string, pollMs: number, limited: boolean): Form {
  const limit = limited ? 'the concurrency of the row as workerConcurrency' : 'no limit';
  return {
    ...dbos,
    name: `DBOS, queued, ${name}`,
    mode: 'queued',
    setup: `a queue with minPollingIntervalMs ${pollMs} and ${limit}; ${dbosSetup}`,
    options: { poolSize: PEER_POOL, queue: { pollMs, limited } },
  };
}

export const dbosPolling = dbosQueued('polling each 1 ms', 1, true);
export const dbosPollingLess = dbosQueued('polling each 10 ms', 10, true);
export const dbosUnlimited = dbosQueued('unlimited', 10, false);

export const dbosDrizzle: Form = {
  ...dbosDirect,
  name: 'DBOS 4, drizzle datasource',
  engine: 'dbos-drizzle',
  setup:
    `startWorkflow without a queue, DrizzleDataSource with as many connections; ${dbosSetup}. ` +
    'The datasource does not run with DBOS 5 yet',
  async create(url) {
    await addOrders(url);
    const { createTables } = await import('../../systems/dbos/drizzle.ts');
    await createTables(url);
  },
};

export const openWorkflowQueued: Form = {
  ...openWorkflow,
  name: 'OpenWorkflow',
  mode: 'queued',
  setup: `one worker with the concurrency of the row, a pool of ${PEER_POOL}`,
  options: { poolSize: PEER_POOL },
};

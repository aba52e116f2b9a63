import { DBOS } from '@dbos-inc/dbos-sdk';
import { DrizzleDataSource } from '@dbos-inc/drizzle-datasource';
import { insertOrder } from '../../child/orders.ts';
import type { OpenEngine, WorkflowInput } from '../../child/workflows.ts';

export interface DbosDrizzleOptions {
  /** Of its own database and of the app's, each. */
  readonly poolSize: number;
}

const notMeasured = () => Promise.reject(new Error('Only workflows that are started here are measured'));

/** DBOS Transact 4 with its drizzle datasource, which does not run with version 5 yet. */
export const openEngine: OpenEngine = async ({ url, options }, notes) => {
  const { poolSize } = options as DbosDrizzleOptions;
  const app = new DrizzleDataSource('app', { connectionString: url, max: poolSize });
  const workflow = DBOS.registerWorkflow(
    (input: WorkflowInput) =>
      notes.carryOut(input, {
        run: (name, result) => DBOS.runStep(async () => result, { name }),
        order: (name) => app.runTransaction(() => insertOrder(app.client), { name }),
        waitForSignal: notMeasured,
        sleep: notMeasured,
      }),
    { name: 'bench' },
  );
  DBOS.setConfig(dbosConfig(url, poolSize));
  await DBOS.launch();
  return {
    async run(input) {
      const handle = await DBOS.startWorkflow(workflow)(input);
      await handle.getResult();
    },
    put: notMeasured,
    signal: notMeasured,
    replay: notMeasured,
    close: () => DBOS.shutdown(),
  };
};

/** Creates the tables of both. */
export async function createTables(url: string): Promise<void> {
  DBOS.setConfig(dbosConfig(url, 2));
  await DBOS.launch();
  await DBOS.shutdown();
  await DrizzleDataSource.initializeDBOSSchema({ connectionString: url });
}

function dbosConfig(url: string, poolSize: number) {
  return {
    name: 'bench',
    systemDatabaseUrl: url,
    systemDatabasePoolSize: poolSize,
    applicationVersion: 'bench',
    logLevel: 'error',
    runAdminServer: false,
  };
}

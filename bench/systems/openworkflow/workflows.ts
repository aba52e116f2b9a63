import { OpenWorkflow, type Workflow } from 'openworkflow';
import { BackendPostgres } from 'openworkflow/postgres';
import postgres from 'postgres';
import { connectApp, insertOrder } from '../../child/orders.ts';
import type { OpenEngine, WorkflowInput } from '../../child/workflows.ts';

export interface OpenWorkflowEngineOptions {
  /** Of its own database, and of the app's where workflows write there. */
  readonly poolSize: number;
}

const NAME = 'bench';
type Run = Parameters<Workflow<WorkflowInput, number, WorkflowInput>['fn']>[0];
const signalOf = (n: number) => `go-${n}`;
/** How many are put in at the same time. */
const AT_ONCE = 50;

/** OpenWorkflow with one worker. A step that writes has a transaction of its own, before its record. */
export const openEngine: OpenEngine = async ({ url, concurrency, works, options }, notes) => {
  const { poolSize } = options as OpenWorkflowEngineOptions;
  const client = postgres(url, {
    max: poolSize,
    onnotice: () => {},
    // As its own pool has it.
    transform: { column: { from: postgres.toCamel } },
  });
  const backend = BackendPostgres.fromPool(client);
  const ow = new OpenWorkflow({ backend });
  const app = connectApp(url, poolSize);
  const workflow = ow.defineWorkflow({ name: NAME }, async ({ input, step }: Run) =>
    notes.carryOut(input, {
      run: (name, result) => step.run({ name }, () => result),
      order: async (name) => {
        await step.run({ name }, () => app.db.transaction((tx) => insertOrder(tx)));
      },
      waitForSignal: async () => {
        await step.waitForSignal({ signal: signalOf(input.n), timeout: '365d' });
      },
      sleep: (ms) => step.sleep('sleep', `${ms}ms`),
    }),
  );
  const worker = works ? ow.newWorker({ concurrency }) : undefined;
  await worker?.start();

  async function signal(n: number): Promise<void> {
    await ow.sendSignal({ signal: signalOf(n) });
  }

  return {
    async put(inputs) {
      for (let from = 0; from < inputs.length; from += AT_ONCE) {
        await Promise.all(inputs.slice(from, from + AT_ONCE).map((input) => workflow.run(input)));
      }
    },
    signal,
    replay: ({ n }) => signal(n),
    async close() {
      await worker?.stop();
      await app.close();
      await client.end();
    },
  };
};

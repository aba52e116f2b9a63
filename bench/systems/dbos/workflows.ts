import { DBOS, DBOSClient } from 'dbos-sdk-5';
import type { OpenEngine, WorkflowEngine, WorkflowInput } from '../../child/workflows.ts';

export interface DbosEngineOptions {
  /** Workflows of the queue come from there; undefined where none are put in. */
  readonly queue?: {
    /** At most as many at once as the measurement has, or as many as there are. */
    readonly limited: boolean;
    readonly pollMs: number;
  };
  readonly poolSize: number;
}

const NAME = 'bench';
const QUEUE = 'bench';
const VERSION = 'bench';
const TOPIC = 'go';
const idOf = (n: number) => `workflow-${n}`;
/** How many are put in at the same time. */
const AT_ONCE = 50;
/** It is woken by a notification; what it asks for beside that would only slow it down. */
const ASK_EVERY_MS = 3_600_000;
const WAIT_S = 365 * 86_400;

/** DBOS Transact 5; `drizzle.ts` has steps that write. */
export const openEngine: OpenEngine = async ({ url, concurrency, works, options }, notes) => {
  const { queue, poolSize } = options as DbosEngineOptions;
  if (!works) return await openClient(url, poolSize);

  const workflow = DBOS.registerWorkflow(
    (input: WorkflowInput) =>
      notes.carryOut(input, {
        run: (name, result) => DBOS.runStep(async () => result, { name }),
        order: () => Promise.reject(new Error('The drizzle datasource is for an older version')),
        waitForSignal: async () => {
          await DBOS.recv(TOPIC, { timeoutSeconds: WAIT_S, pollingIntervalMs: ASK_EVERY_MS });
        },
        sleep: (ms) => DBOS.sleep(ms),
      }),
    { name: NAME },
  );
  DBOS.setConfig({
    name: NAME,
    systemDatabaseUrl: url,
    systemDatabasePoolSize: poolSize,
    applicationVersion: VERSION,
    logLevel: 'error',
    tracingEnabled: false,
    enableOTLP: false,
  });
  await DBOS.launch();
  if (queue !== undefined) {
    const limit = queue.limited ? { workerConcurrency: concurrency } : {};
    await DBOS.registerQueue(QUEUE, { minPollingIntervalMs: queue.pollMs, ...limit });
  }

  return {
    async run(input) {
      const handle = await DBOS.startWorkflow(workflow)(input);
      await handle.getResult();
    },
    async put(inputs) {
      for (let from = 0; from < inputs.length; from += AT_ONCE) {
        await Promise.all(
          inputs
            .slice(from, from + AT_ONCE)
            .map((input) => DBOS.startWorkflow(workflow, { workflowID: idOf(input.n) })(input)),
        );
      }
    },
    async signal(n) {
      await DBOS.send(idOf(n), null, TOPIC);
    },
    async replay({ n, steps }) {
      await DBOS.forkWorkflow(idOf(n), steps);
    },
    close: () => DBOS.shutdown(),
  };
};

/** A process that only puts in. */
async function openClient(url: string, poolSize: number): Promise<WorkflowEngine> {
  const client = await DBOSClient.create({
    systemDatabaseUrl: url,
    systemDatabasePoolSize: poolSize,
    applicationName: NAME,
  });
  return {
    async put(inputs) {
      for (let from = 0; from < inputs.length; from += AT_ONCE) {
        await Promise.all(
          inputs.slice(from, from + AT_ONCE).map((input) =>
            client.enqueue<(input: WorkflowInput) => Promise<number>>(
              {
                queueName: QUEUE,
                workflowName: NAME,
                workflowID: idOf(input.n),
                appVersion: VERSION,
                applicationName: NAME,
              },
              input,
            ),
          ),
        );
      }
    },
    async signal(n) {
      await client.send(idOf(n), null, TOPIC);
    },
    replay: () => Promise.reject(new Error('Only the process that works replays')),
    close: () => client.destroy(),
  };
}

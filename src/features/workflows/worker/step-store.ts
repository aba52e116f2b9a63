import type { Runner } from '../../../core/sql/executor.ts';
import { faultPoint } from '../../../core/sql/fault-point.ts';
import type { Retries } from '../../../core/time/retries.ts';
import { isAboutLocks, isAboutTheServer } from '../../../core/worker/base/refusal.ts';
import type { AttemptAddedTo } from '../../../core/worker/run/added-context.ts';
import { findSteps } from '../queries/find-steps.ts';
import { type Received, receiveSignal, type SignalToReceive } from '../queries/receive-signal.ts';
import { recordOneStep } from '../queries/record-one-step.ts';
import type { TablesOfWorkflows } from '../sql/workflow-tables.ts';
import type { StepRecorder } from './step-recorder.ts';
import type { StepStore } from './step-run.ts';

const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 2_000;

/** The steps of an attempt in a worker: it tries again while the database does not answer. */
export function storeInWorker(
  attempt: AttemptAddedTo,
  db: Runner,
  tables: TablesOfWorkflows,
  recorder: StepRecorder,
  retries: Retries,
): StepStore {
  const { job, holder } = attempt;
  async function answered<T>(ask: () => Promise<T>): Promise<T> {
    for (let delayMs = FIRST_RETRY_MS; ; delayMs = Math.min(delayMs * 2, MAX_RETRY_MS)) {
      try {
        return await ask();
      } catch (error) {
        if (!isAboutTheServer(error) && !isAboutLocks(error)) throw error;
        await retries.sleep(delayMs, attempt.signal);
        attempt.signal.throwIfAborted();
      }
    }
  }
  return {
    find: () => answered(() => findSteps(db, tables, job)),
    record: (step) => recorder.record(step, attempt.signal),
    recordIn: (tx, step) => recordOneStep(tx, tables, holder, step, 'wait'),
    receive: (signal) =>
      answered(async () => {
        const received = await receiveSignal(db, tables, holder, signal, 'briefly');
        await faultPoint('signal: received');
        return received;
      }),
  };
}

/** The steps of the one attempt of `runNext`, in its transaction. */
export function storeInTransaction(attempt: AttemptAddedTo, tables: TablesOfWorkflows): StepStore {
  const { job, holder, environment } = attempt;
  const { db } = environment;
  return {
    find: () => findSteps(db, tables, job),
    record: (step) => recordOneStep(db, tables, holder, step, 'wait'),
    recordIn: (tx, step) => recordOneStep(tx, tables, holder, step, 'wait'),
    receive: (signal: SignalToReceive): Promise<Received | undefined> =>
      receiveSignal(db, tables, holder, signal, 'wait'),
  };
}

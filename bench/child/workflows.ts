import { nowMs } from './counter.ts';

/**
 * What a workflow of the benches does: no-op steps one after the other; steps that each insert an order; a
 * wait for a signal; a sleep until tomorrow; steps, and then a wait for a signal, after which they are
 * replayed.
 */
export type Shape = 'steps' | 'orders' | 'wait' | 'sleep' | 'replay';

export interface WorkflowInput {
  /** Its number, in no other workflow of the database. */
  readonly n: number;
  readonly shape: Shape;
  readonly steps: number;
}

/** What the engines call by different names. */
export interface WorkflowSteps {
  run(name: string, result: number): Promise<number>;
  /** Inserts an order, in one transaction with the record of the step where the engine can do that. */
  order(name: string): Promise<void>;
  waitForSignal(): Promise<void>;
  sleep(ms: number): Promise<void>;
}

const DAY_MS = 86_400_000;

/** When the workflows of a process have done what, by `process.hrtime` in milliseconds. */
export class WorkflowNotes {
  /** When the first workflow was at its first line. */
  firstMs: number | undefined;
  /** When workflows ended, in that order. Their engine may not have recorded it yet. */
  readonly endedMs: number[] = [];
  /** How many have begun to wait, or to wait once more. */
  waiting = 0;
  /** When a workflow was at the first line after its wait, by its number. */
  readonly resumedMs = new Map<number, number>();
  /** When each run of a replayed workflow was at its first line and after its last step; first runs too. */
  readonly replays: { readonly startMs: number; readonly endMs: number }[] = [];

  /** The one function of all workflows, whichever engine runs it. */
  async carryOut({ n, shape, steps }: WorkflowInput, step: WorkflowSteps): Promise<number> {
    const startMs = nowMs();
    this.firstMs ??= startMs;
    if (shape === 'wait') {
      this.waiting++;
      await step.waitForSignal();
      this.resumedMs.set(n, nowMs());
    } else if (shape === 'sleep') {
      this.waiting++;
      await step.sleep(DAY_MS);
    } else if (shape === 'orders') {
      for (let index = 0; index < steps; index++) await step.order(`step-${index}`);
    } else {
      for (let index = 0; index < steps; index++) await step.run(`step-${index}`, index);
      if (shape === 'replay') {
        this.replays.push({ startMs, endMs: nowMs() });
        await step.waitForSignal();
      }
    }
    this.endedMs.push(nowMs());
    return n;
  }
}

/** Workflows, in a measured process. */
export interface WorkflowEngine {
  /** Starts a workflow here, and waits until its end is recorded; undefined where that is impossible. */
  readonly run?: (input: WorkflowInput) => Promise<void>;
  /** Puts workflows in, for this process or another to run. */
  put(inputs: readonly WorkflowInput[]): Promise<void>;
  /** Sends a workflow its signal; resolves when the commit is answered. */
  signal(n: number): Promise<void>;
  /** Has a workflow that has waited run again from its records. */
  replay(input: WorkflowInput): Promise<void>;
  close(): Promise<void>;
}

export interface EngineRequest {
  readonly engine: EngineName;
  readonly url: string;
  /** How many workflows run at once, at most. */
  readonly concurrency: number;
  /** Whether the process works; otherwise it only puts workflows and signals in. */
  readonly works: boolean;
  readonly options?: unknown;
}

export type OpenEngine = (request: EngineRequest, notes: WorkflowNotes) => Promise<WorkflowEngine>;

/** Loaded when asked for: a peer's memory is its own. */
const engines = {
  'drizzle-queue': async (): Promise<OpenEngine> =>
    (await import('../systems/drizzle-queue/workflows.ts')).openEngine,
  dbos: async (): Promise<OpenEngine> => (await import('../systems/dbos/workflows.ts')).openEngine,
  'dbos-drizzle': async (): Promise<OpenEngine> => (await import('../systems/dbos/drizzle.ts')).openEngine,
  openworkflow: async (): Promise<OpenEngine> =>
    (await import('../systems/openworkflow/workflows.ts')).openEngine,
};

export type EngineName = keyof typeof engines;

export async function openEngine(request: EngineRequest, notes: WorkflowNotes): Promise<WorkflowEngine> {
  const open = await engines[request.engine]();
  return await open(request, notes);
}

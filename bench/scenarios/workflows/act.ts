import { nowMs } from '../../child/counter.ts';
import {
  type EngineRequest,
  openEngine,
  type Shape,
  type WorkflowEngine,
  type WorkflowInput,
  WorkflowNotes,
} from '../../child/workflows.ts';

/** Workflows by number: `from`, and so many more. */
export interface Some {
  /** `wait-or-sleep`: those with an even number wait for a signal, the others sleep. */
  readonly shape: Shape | 'wait-or-sleep';
  readonly steps: number;
  readonly from: number;
  readonly count: number;
}

/** Workflows that have ended. */
export interface Ended {
  /** When the first of them was at its first line, by `process.hrtime` in milliseconds. */
  readonly firstMs: number;
  readonly count: number;
  readonly lastMs: number;
}

const BEGIN_WITHIN_MS = 60_000;

/** What a process with an engine does when it is told to, by name. */
export interface Acts {
  open(request: EngineRequest): Promise<void>;
  /** Starts workflows, so many at once; answers how many milliseconds each took. */
  run(some: Some & { readonly inFlight: number; readonly limitMs: number }): Promise<readonly number[]>;
  /** Puts workflows in. */
  put(some: Some): Promise<void>;
  /** Waits until so many have ended, or for so long from the first line of the first. */
  ended(request: { readonly count: number; readonly limitMs: number }): Promise<Ended>;
  /** How many have begun to wait so far. */
  waiting(): Promise<number>;
  /** Sends a signal to each of them, so many milliseconds apart; answers when each was committed. */
  signal(request: {
    readonly numbers: readonly number[];
    readonly everyMs: number;
  }): Promise<readonly number[]>;
  /** When each of them went on after its wait; `undefined`: not yet. */
  resumed(numbers: readonly number[]): Promise<readonly (number | undefined)[]>;
  /** Has a workflow run again from its records; answers when the commit of that was answered. */
  replay(request: { readonly n: number; readonly steps: number }): Promise<number>;
  /** See {@link WorkflowNotes.replays}. */
  replays(): Promise<WorkflowNotes['replays']>;
  close(): Promise<void>;
}

export type ActRequest = {
  readonly [K in keyof Acts]: { readonly act: K; readonly request: Parameters<Acts[K]>[0] };
}[keyof Acts];

let notes = new WorkflowNotes();
let opened: WorkflowEngine | undefined;

const acts: Acts = {
  async open(request) {
    notes = new WorkflowNotes();
    opened = await openEngine(request, notes);
  },
  async run({ shape, steps, from, count, inFlight, limitMs }) {
    const { run } = engine();
    if (run === undefined) throw new TypeError('This engine has no run');
    const endMs = nowMs() + limitMs;
    const tookMs: number[] = [];
    let next = from;
    const loop = async () => {
      while (next < from + count && nowMs() < endMs) {
        const startMs = nowMs();
        await run(inputOf(next++, shape, steps));
        tookMs.push(nowMs() - startMs);
      }
    };
    await Promise.all(Array.from({ length: inFlight }, loop));
    return tookMs;
  },
  async put({ shape, steps, from, count }) {
    await engine().put(Array.from({ length: count }, (_, index) => inputOf(from + index, shape, steps)));
  },
  async ended({ count, limitMs }) {
    await until(() => notes.firstMs !== undefined, BEGIN_WITHIN_MS);
    const firstMs = notes.firstMs ?? Number.NaN;
    await until(() => notes.endedMs.length >= count, firstMs + limitMs - nowMs());
    return { firstMs, count: notes.endedMs.length, lastMs: notes.endedMs.at(-1) ?? Number.NaN };
  },
  waiting: async () => notes.waiting,
  async signal({ numbers, everyMs }) {
    const committedMs: number[] = [];
    const startMs = nowMs();
    for (const [index, n] of numbers.entries()) {
      const waitMs = startMs + index * everyMs - nowMs();
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      await engine().signal(n);
      committedMs.push(nowMs());
    }
    return committedMs;
  },
  resumed: async (numbers) => numbers.map((n) => notes.resumedMs.get(n)),
  async replay({ n, steps }) {
    await engine().replay({ n, shape: 'replay', steps });
    return nowMs();
  },
  replays: async () => notes.replays,
  async close() {
    await engine().close();
    opened = undefined;
  },
};

/** Measures with an engine that stays open between calls. */
export async function act({ act, request }: ActRequest): Promise<unknown> {
  // The type of the request belongs to the name.
  const carryOut = acts[act] as (request: unknown) => Promise<unknown>;
  return await carryOut(request);
}

function inputOf(n: number, shape: Some['shape'], steps: number): WorkflowInput {
  return { n, shape: shape !== 'wait-or-sleep' ? shape : n % 2 === 0 ? 'wait' : 'sleep', steps };
}

function engine(): WorkflowEngine {
  if (opened === undefined) throw new TypeError('No engine is open');
  return opened;
}

async function until(isSo: () => boolean, timeoutMs: number): Promise<void> {
  for (const endMs = nowMs() + timeoutMs; !isSo() && nowMs() < endMs; ) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

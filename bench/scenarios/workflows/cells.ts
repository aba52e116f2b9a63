import type { Shape } from '../../child/workflows.ts';
import {
  dbosDirect,
  dbosDrizzle,
  dbosPolling,
  dbosPollingLess,
  dbosUnlimited,
  type Form,
  openWorkflowQueued,
  ownQueued,
  ownStarted,
  queuedOnNodePostgres,
  startedOnNodePostgres,
} from './forms.ts';
import type { Load } from './measure-rate.ts';

/** One figure of a table: a form with a load. */
export interface Cell {
  readonly part: 'step' | 'workflow' | 'order';
  readonly form: Form;
  readonly load: Load;
}

interface Part {
  readonly part: Cell['part'];
  readonly shape: Shape;
  readonly steps: number;
  readonly inFlight: number;
  readonly forms: readonly Form[];
}

/** Steps of workflows that are long enough that their start and end hardly count. */
const ALONE = 200;
const BATCHED = { inFlight: 100, steps: 20 };
/** How many of those workflows are under way: each step is recorded alone, or together with others. */
export const LONG_AT_ONCE = [1, BATCHED.inFlight];
export const CONCURRENCIES = [1, 50, 500];
const STEPS = 5;

const inProcess = [ownStarted, startedOnNodePostgres, dbosDirect, openWorkflowQueued];
const all = [
  ownStarted,
  startedOnNodePostgres,
  ownQueued,
  queuedOnNodePostgres,
  dbosDirect,
  dbosPolling,
  dbosPollingLess,
  openWorkflowQueued,
];
const writing = [ownStarted, startedOnNodePostgres, dbosDrizzle, openWorkflowQueued];

const PARTS: readonly Part[] = [
  { part: 'step', shape: 'steps', steps: ALONE, inFlight: 1, forms: inProcess },
  { part: 'step', shape: 'steps', ...BATCHED, forms: inProcess },
  ...CONCURRENCIES.map((inFlight) => ({
    part: 'workflow' as const,
    shape: 'steps' as const,
    steps: STEPS,
    inFlight,
    forms: inFlight < 500 ? all : [...all, dbosUnlimited],
  })),
  ...[1, 50].map((inFlight) => ({
    part: 'order' as const,
    shape: 'orders' as const,
    steps: STEPS,
    inFlight,
    forms: writing,
  })),
];

/** How many workflows a form does at most in the time, roughly: ours of no-op steps, others. */
const OWN_STEPS_IN_TIME = 15_000;
const STEPS_IN_TIME = 3_000;

export function cellsOf(quick: boolean): Cell[] {
  // Each form once in each part.
  const parts = quick
    ? PARTS.filter(({ part, inFlight }) => inFlight === (part === 'workflow' ? 500 : 1))
    : PARTS;
  return parts.flatMap(({ part, shape, steps, inFlight, forms }) =>
    forms.map((form): Cell => {
      const atOnce = quick ? Math.min(inFlight, 20) : inFlight;
      const most = quick ? 100 : form.engine === 'drizzle-queue' ? OWN_STEPS_IN_TIME : STEPS_IN_TIME;
      const least = quick ? 3 : Math.max(10, atOnce);
      const load = {
        shape,
        steps: quick ? STEPS : steps,
        workflows: Math.max(least, Math.ceil(most / steps)),
        inFlight: atOnce,
        limitMs: quick ? 2_000 : 4_000,
      };
      return { part, form, load };
    }),
  );
}

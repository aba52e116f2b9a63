import { queueJobs, queuePauses, queueResults, queueWorkers } from '../../core/schema/index.ts';
import {
  type Database,
  type Handler,
  type HandlerContext,
  type HandlerResult,
  type JobDefinition,
  type JobHandler,
  type JobInfo,
  type OutputInput,
  type PayloadInput,
  type Queue,
  QueueError,
  type Workflows,
} from '../../index.ts';
import {
  checkDefinition,
  checkInteger,
  checkObject,
  checkOptions,
  MAX_ATTEMPTS,
  namesOf,
  ownColumnsOf,
} from '../../internal.ts';
import {
  type ClaimedJob,
  executeJob,
  type OwnValuesOf,
  payloadToStore,
  progressToStore,
  StepRun,
  type StoredValue,
  toStoredJson,
  transitionFor,
  verdictOn,
} from '../../testing-face.ts';
import type { GivenParent } from './given-parents.ts';
import { type GivenSignal, GivenSteps, type RunStep } from './given-steps.ts';
import { UnheldAttempt } from './unheld-attempt.ts';

/** What {@link runHandler} runs a handler with. */
export interface RunHandlerOptions<TJob extends JobDefinition, TDb = Database, TQueue extends Queue = Queue> {
  /** As an enqueue takes it. @default none */
  payload?: PayloadInput<TJob> | undefined;
  /**
   * Instead of the payload: what is stored, as by an older version of the app. Nothing checks it before the
   * attempt does.
   */
  stored?: unknown;
  /** Which attempt it is, from 1 to `maxAttempts`. @default 1 */
  attempt?: number | undefined;
  /** 1–10,000. @default the definition's */
  maxAttempts?: number | undefined;
  /** What else the handler sees of its job, and the app's own columns. */
  job?: Partial<Omit<JobInfo, 'kind' | 'attempt' | 'maxAttempts' | 'payloadBytes'> & OwnValuesOf<TQueue>>;
  /** The context's `db`: a database, a transaction or a fake. @default one that throws when it is used */
  db?: TDb | undefined;
  /** The queue whose `around.run` the handler runs inside; needed for its `step`. @default none */
  queue?: TQueue | undefined;
  /**
   * Steps that an earlier attempt has recorded: their outputs by their names. `undefined` is a step without
   * an output, and a signal that did not come in time. An `Error` is a step that has failed for good.
   * @default none
   */
  steps?: Readonly<Record<string, unknown>> | undefined;
  /** Signals that were sent to the job, oldest first, each made by `sent`. @default none */
  signals?: readonly GivenSignal[] | undefined;
  /**
   * The jobs that it has waited for before it began, in the order in which they were added, each made by
   * `ended`: what `step.parents` and `step.parentCounts` return. @default none
   */
  parents?: readonly GivenParent[] | undefined;
  /** When it is aborted the attempt is interrupted, as by the stop of its worker. @default none */
  signal?: AbortSignal | undefined;
}

/** How an attempt of {@link runHandler} has ended. */
export interface HandlerRun<TJob extends JobDefinition> {
  readonly outcome: 'completed' | 'failed' | 'snoozed' | 'waiting' | 'cancelled' | 'interrupted';
  /** What would be stored of the output, also by `complete`; `undefined` unless completed. */
  readonly output: StoredValue<OutputInput<TJob>> | undefined;
  /** What the handler threw, or why its payload, output or time was refused. */
  readonly error: unknown;
  /** Whether the failed attempt was the job's last. */
  readonly discarded: boolean;
  /**
   * In how long the job would run again: the backoff, or the delay of a snooze or a wait, in milliseconds;
   * `undefined` also for a wait without a limit.
   */
  readonly retryInMs: number | undefined;
  /** The handler's own reason to cancel the job. */
  readonly reason: string | undefined;
  /** Whether the handler has called `complete(tx)`. */
  readonly committed: boolean;
  /** Each value of `job.progress`, as it would be stored. */
  readonly progress: readonly unknown[];
  /** What the handler has recorded, in that order, without what was given. Sleeps pass at once. */
  readonly steps: readonly RunStep[];
  /** The names of the steps that wait for a signal or for children; empty unless waiting. */
  readonly waitsFor: readonly string[];
  /** The handler's own. */
  readonly signal: AbortSignal;
}

const OPTIONS = namesOf<RunHandlerOptions<JobDefinition>>({
  payload: true,
  stored: true,
  attempt: true,
  maxAttempts: true,
  job: true,
  db: true,
  queue: true,
  steps: true,
  signals: true,
  parents: true,
  signal: true,
});

/**
 * Runs one attempt of a handler without a database, as a worker does: the payload is what becomes of it in
 * the database, payload and output are validated, the signal and `timeoutMs` are real. What the handler
 * throws is returned. `complete(tx)` validates and keeps its output; that its transaction commits is not
 * checked.
 *
 * The `step` of a queue with workflows works in memory: recorded steps, signals and parents are those given,
 * sleeps pass at once, and a wait for a signal that is not there ends the run as `waiting`. Children do not
 * run: what they return is given under the name of the step that waits for them.
 * `step.transaction` needs a `db`.
 *
 * ```ts
 * const run = await runHandler(sendReceipt, { payload: { orderId: 1 }, attempt: 3 }, sendReceiptHandler);
 * expect(run).toMatchObject({ outcome: 'completed', output: { messageId: 'm1' } });
 * ```
 *
 * @param handler a function, or what `handle` returns for this definition
 * @throws InvalidPayloadError for a payload that no enqueue takes
 * @throws InvalidSignalError for a value of `signals` that the schema of its signal refuses
 * @throws InvalidOutputError for an output of `parents` that its definition refuses
 * @throws TypeError | RangeError naming the option that is wrong
 */
export async function runHandler<TJob extends JobDefinition, TDb = Database, TQueue extends Queue = Queue>(
  job: TJob,
  options: RunHandlerOptions<TJob, TDb, TQueue>,
  handler:
    | Handler<TDb, OwnValuesOf<TQueue>>
    | ((context: HandlerContext<TJob, TDb, TQueue>) => HandlerResult<TJob> | Promise<HandlerResult<TJob>>),
): Promise<HandlerRun<TJob>> {
  checkDefinition('runHandler', job);
  checkOptions('runHandler: options', options, OPTIONS);
  const { queue, signal } = options;
  const steps = await stepsOf(options);
  const run = handler as unknown as JobHandler<TDb, OwnValuesOf<TQueue>>['run'];
  const bound = boundTo(job, typeof handler === 'function' ? { job, run } : handler);
  const progress: unknown[] = [];
  const tables = queue?.tables ?? { queueJobs, queueResults, queueWorkers, queuePauses };
  const attempt = new UnheldAttempt(await jobOf(job, options), bound, {
    // Only the handler uses it; its type says which it takes.
    db: (options.db ?? noDatabase()) as Database,
    tables,
    workerId: null,
    around: queue?.around,
    added: steps === undefined ? undefined : { name: 'step', of: (attempt) => new StepRun(attempt, steps) },
    onProgress: (_, value) => progress.push(JSON.parse(progressToStore(value))),
  });
  const stop = () => attempt.interrupt(new QueueError('The worker stops', { cause: signal?.reason }));
  signal?.addEventListener('abort', stop);
  try {
    if (signal?.aborted) stop();
    return toRun<TJob>(attempt, await executeJob(attempt), { progress, steps });
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

/** @throws TypeError where steps are given and the handler has none */
async function stepsOf({
  queue,
  steps,
  signals = [],
  parents = [],
}: Pick<RunHandlerOptions<JobDefinition>, 'queue' | 'steps' | 'signals' | 'parents'>): Promise<
  GivenSteps | undefined
> {
  if (queue?.workflows === undefined) {
    if (steps === undefined && signals.length === 0 && parents.length === 0) return undefined;
    throw new TypeError(
      'runHandler: steps, signals and parents are for a queue with workflows: ' +
        'give it queue: createQueue({ workflows: workflowsIn(…) })',
    );
  }
  if (!Array.isArray(signals)) throw new TypeError('runHandler: signals must be an array, of sent(…)');
  if (!Array.isArray(parents)) throw new TypeError('runHandler: parents must be an array, of ended(…)');
  // The type of a queue does not say which feature its workflows are.
  const { tokens } = queue.workflows as Pick<Workflows, 'tokens'>;
  return await GivenSteps.of(checkObject('runHandler: steps', steps ?? {}), signals, parents, tokens);
}

function boundTo<TDb, TOwn>(job: JobDefinition, handler: Handler<TDb, TOwn>): Handler {
  if (typeof handler?.run !== 'function') {
    throw new TypeError('runHandler takes a function, or what handle returns, after its options');
  }
  if (handler.job.kind !== job.kind) {
    throw new TypeError(`runHandler: the handler is of '${handler.job.kind}', not of '${job.kind}'`);
  }
  if (handler.batch !== undefined) {
    throw new TypeError(
      `runHandler: the handler of '${job.kind}' is a batch handler: use drainIn, or call it`,
    );
  }
  // The context's db is the one that was given, or one that throws when it is used.
  return handler as unknown as Handler;
}

async function jobOf<TJob extends JobDefinition, TQueue extends Queue>(
  definition: TJob,
  options: Omit<RunHandlerOptions<TJob, unknown, TQueue>, 'db'>,
): Promise<ClaimedJob> {
  const maxAttempts = checkInteger(
    'runHandler: maxAttempts',
    options.maxAttempts ?? definition.maxAttempts,
    1,
    MAX_ATTEMPTS,
  );
  const attempt = checkInteger('runHandler: attempt', options.attempt ?? 1, 1, maxAttempts);
  if ('stored' in options && options.payload !== undefined) {
    throw new TypeError('runHandler: payload and stored cannot be combined');
  }
  const json =
    'stored' in options
      ? toStoredJson(options.stored ?? null)
      : // Left out, it is that of a job without one.
        await payloadToStore(definition, options.payload as PayloadInput<TJob>);
  const now = new Date();
  // Its values are those of a claimed job; own columns stand beside them.
  const also = options.job as Partial<ClaimedJob> | undefined;
  const own = ownColumnsOf((options.queue?.tables ?? { queueJobs }).queueJobs);
  return {
    ...Object.fromEntries(own.map(({ key }) => [key, null])),
    id: 1,
    queue: definition.queue,
    payloadBytes: json.length,
    priority: definition.priority,
    runAt: now,
    begun: true,
    // That of a second claim: for a first one, steps are not read.
    fence: (also?.createdAt ?? now).getTime() + 2,
    uniqueKey: null,
    errors: [],
    metadata: {},
    createdAt: now,
    claimedAt: now,
    cancelReason: null,
    ...also,
    kind: definition.kind,
    payload: JSON.parse(json),
    attempt,
    maxAttempts,
  };
}

function toRun<TJob extends JobDefinition>(
  attempt: UnheldAttempt,
  ended: Awaited<ReturnType<typeof executeJob>>,
  { progress, steps }: { readonly progress: readonly unknown[]; readonly steps: GivenSteps | undefined },
): HandlerRun<TJob> {
  const { completed, facts, signal } = attempt;
  const outcome =
    ended.type === 'committed' ? ({ type: 'completed', output: completed ?? 'null' } as const) : ended;
  const verdict = verdictOn(outcome, facts);
  const transition = transitionFor(verdict, facts);
  const again = transition.type !== 'finish' && verdict.type !== 'interrupted';
  const endless = transition.type === 'park' && transition.delayMs === null;
  return {
    outcome: verdict.type,
    // Stored as the schema's input.
    output: verdict.type === 'completed' ? JSON.parse(verdict.output) : undefined,
    error: verdict.type === 'failed' ? verdict.error : undefined,
    discarded: transition.type === 'finish' && transition.state === 'discarded',
    retryInMs: again && !endless ? (transition.delayMs ?? 0) : undefined,
    reason: verdict.type === 'cancelled' ? verdict.reason : undefined,
    committed: completed !== undefined,
    progress,
    steps: steps?.recorded ?? [],
    waitsFor: verdict.type === 'waiting' ? (steps?.waiting ?? []) : [],
    signal,
  };
}

/** @throws QueueError whatever is asked of it, but for what a runner asks to show it */
function noDatabase(): object {
  return new Proxy(
    {},
    {
      get: (_, name) => {
        if (typeof name === 'symbol' || name === 'then' || name === 'toJSON') return undefined;
        throw new QueueError(`runHandler has no database, and the handler uses its ${name}: give it a db`);
      },
    },
  );
}

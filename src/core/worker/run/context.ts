import { QueueError } from '../../../errors.ts';
import { copyJson } from '../../job/copy-json.ts';
import { NO_GROUP } from '../../job/group.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import type { Database, Transaction } from '../../sql/executor.ts';
import type { AddedContext, AttemptAddedTo } from './added-context.ts';
import type { RunningJob, UntypedContext } from './handler.ts';

export interface ShownAttempt extends AttemptAddedTo {
  readonly environment: {
    readonly db: Database;
    readonly tables: QueueTables;
    readonly added?: AddedContext | undefined;
  };
  report(value: unknown): void;
  complete(tx: Transaction, output: unknown): Promise<void>;
}

/** What the handler gets. Its signal and its job, which many handlers do not use, are made on demand. */
export class Context implements UntypedContext {
  declare readonly signal: AbortSignal;
  declare readonly job: RunningJob;
  readonly db: Database;
  readonly complete: UntypedContext['complete'];
  readonly #attempt: ShownAttempt;
  #job: RunningJob | undefined;

  constructor(
    attempt: ShownAttempt,
    readonly payload: unknown,
  ) {
    this.#attempt = attempt;
    this.db = attempt.environment.db;
    this.complete = (tx, output) => attempt.complete(tx, output);
    // The context's own, so that a copy ({ ...context }) has them too. Two calls: one for both is slower.
    Object.defineProperty(this, 'signal', Context.#signal);
    Object.defineProperty(this, 'job', Context.#runningJob);
    const { added } = attempt.environment;
    if (added !== undefined) this.#add(added);
  }

  #add({ name, of }: AddedContext): void {
    let value: unknown;
    const get = () => {
      value ??= of(this.#attempt);
      return value;
    };
    Object.defineProperty(this, name, { enumerable: true, get });
  }

  /** Workflows add a property of this name, which comes first. A getter of the class costs nothing. */
  get step(): never {
    throw new QueueError(
      'step: the queue of this worker has no workflows. Write ' +
        'createQueue({ workflows: workflowsIn(workflows) }), with the tables of ' +
        "'drizzle-queue/schema/workflows', " +
        'and handlersFor<typeof db, typeof queue>() for the type of step',
    );
  }

  static readonly #signal = {
    enumerable: true,
    get(this: Context): AbortSignal {
      return this.#attempt.signal;
    },
  };

  static readonly #runningJob = {
    enumerable: true,
    get(this: Context): RunningJob {
      this.#job ??= runningJob(this.#attempt);
      return this.#job;
    },
  };
}

/**
 * The handler's own copy: what it does to that reaches no listener, and no other job, with which a job may
 * share its dates. By name: a spread is ten times slower.
 */
export function runningJob(attempt: Pick<ShownAttempt, 'job' | 'environment' | 'report'>): RunningJob {
  const { job, environment } = attempt;
  const running: RunningJob = {
    id: job.id,
    queue: job.queue,
    kind: job.kind,
    payloadBytes: job.payloadBytes,
    priority: job.priority,
    runAt: new Date(job.runAt.getTime()),
    attempt: job.attempt,
    maxAttempts: job.maxAttempts,
    fence: job.fence,
    uniqueKey: job.uniqueKey,
    errors: copyJson(job.errors),
    metadata: copyJson(job.metadata),
    createdAt: new Date(job.createdAt.getTime()),
    claimedAt: new Date(job.claimedAt.getTime()),
    progress: (value) => attempt.report(value),
  };
  const { group } = job;
  if (group !== undefined && group !== NO_GROUP) Object.assign(running, { group });
  for (const { key } of ownColumnsOf(environment.tables.queueJobs)) {
    Reflect.set(running, key, ownCopy(Reflect.get(job, key)));
  }
  return running;
}

/** Of the value of one of the app's own columns. */
function ownCopy(value: unknown): unknown {
  return value instanceof Date ? new Date(value.getTime()) : copyJson(value);
}

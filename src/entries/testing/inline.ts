import { sql } from 'drizzle-orm';
import type { OwnColumns } from '../../core/schema/index.ts';
import {
  type Database,
  type Executor,
  type Handler,
  type JobDefinition,
  type LimitedEnqueueResult,
  type Queue,
  QueueError,
  UnknownKindError,
} from '../../index.ts';
import { checkBoolean, checkOptions, type GivenOptions, namesOf, queryRows, shown } from '../../internal.ts';
import { handlersByKind, NO_DATABASE } from '../../testing-face.ts';
import { checkQueue } from './check-queue.ts';
import { findWrittenJobs, highestId } from './find-written-jobs.ts';
import { runJob } from './run-job.ts';
import { checkTransaction } from './written-here.ts';

/** The options of {@link inline}. */
export interface InlineOptions<TDb, TOwn extends OwnColumns = OwnColumns> {
  /** One handler per kind that is enqueued. */
  handlers: readonly Handler<TDb, TOwn['select']>[];
  /**
   * What becomes of a job that is enqueued for later: it is refused, so that no test takes it for done; it
   * `run`s at once; or it is left to wait. @default 'refuse'
   */
  delayed?: 'refuse' | 'run' | 'leave' | undefined;
  /** Whether an enqueue throws what the handler throws. @default true */
  failFast?: boolean | undefined;
}

const OPTIONS = namesOf<InlineOptions<unknown>>({ handlers: true, delayed: true, failFast: true });

/**
 * The same queue, but each enqueue runs the job's handler before it returns, in a savepoint of the
 * transaction it was given. `enqueueMany` and `enqueueFrom` run their jobs in order. For tests of what a
 * request does, effects of its jobs included.
 *
 * The handler runs once: a snooze or a retry leaves the job to wait, and an enqueue that is refused as a
 * duplicate runs nothing. Jobs that a handler enqueues by the other queue object wait, as do jobs of
 * schedules and of a paused queue. Limits do not apply. `enqueueQuery`, whose query is sent later, is
 * refused.
 *
 * ```ts
 * const inlined = inline(queue, { handlers });
 * await placeOrder(tx, cart, inlined);
 * ```
 *
 * Under concurrency: as `runNext`; no other transaction sees the job before this one has ended.
 *
 * @throws UnknownKindError at an enqueue of a kind without a handler, before anything is sent
 */
export function inline<TDb, TOwn extends OwnColumns, TSchedules, TLimits, TWorkflows>(
  queue: Queue<TOwn, TSchedules, TLimits, Executor, TWorkflows>,
  options: InlineOptions<TDb, TOwn>,
): Queue<TOwn, TSchedules, TLimits, Executor, TWorkflows> {
  checkQueue('inline', queue);
  const { delayed = 'refuse', failFast = true } = checkOptions('inline: options', options, OPTIONS);
  if (!['refuse', 'run', 'leave'].includes(delayed)) {
    throw new TypeError(`inline: delayed must be refuse, run or leave; got ${shown(delayed)}`);
  }
  checkBoolean('inline: failFast', failFast);
  // A handler gets what the enqueue is given, which its type has named.
  const handlers = handlersByKind('inline', options.handlers) as unknown as ReadonlyMap<string, Handler>;
  const runner = new InlineRunner(queue, handlers, delayed, failFast);
  const own: Readonly<Record<PropertyKey, unknown>> = {
    enqueue: runner.enqueue,
    enqueueMany: runner.enqueueMany,
    enqueueFrom: runner.enqueueFrom,
    enqueueQuery: () => {
      throw new QueueError('inline: the query of enqueueQuery is sent later, so its job cannot run now');
    },
  };
  return new Proxy(queue, {
    get: (target, name) => {
      if (Object.hasOwn(own, name)) return own[name];
      const value: unknown = Reflect.get(target, name, target);
      // Its private fields are the queue's own.
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

class InlineRunner {
  constructor(
    private readonly queue: Queue,
    private readonly handlers: ReadonlyMap<string, Handler>,
    private readonly delayed: 'refuse' | 'run' | 'leave',
    private readonly failFast: boolean,
  ) {}

  readonly enqueue = async (
    db: Database,
    job: JobDefinition,
    payload: unknown,
    options?: GivenOptions,
  ): Promise<LimitedEnqueueResult> => {
    this.#check(db, job, options);
    // The overloads of an enqueue ask for the payload of one definition; here it is any.
    const result = await this.queue.enqueue(db, job, payload as never, options as never);
    await this.#run(db, [result]);
    return result;
  };

  readonly enqueueMany = async (
    db: Database,
    job: JobDefinition,
    entries: readonly GivenOptions[],
  ): Promise<LimitedEnqueueResult[]> => {
    for (const entry of Array.isArray(entries) ? entries : []) this.#check(db, job, entry);
    // As in enqueue.
    const results: LimitedEnqueueResult[] = await this.queue.enqueueMany(db, job, entries as never);
    await this.#run(db, results);
    return results;
  };

  readonly enqueueFrom = async (
    db: Database,
    job: JobDefinition,
    select: never,
    options?: GivenOptions,
  ): Promise<{ enqueued: number; duplicates: number }> => {
    this.#check(db, job, options);
    checkTransaction('inline: enqueueFrom', db, 'it tells the jobs of its rows by it');
    const { tables } = this.queue;
    const after = await highestId(db, tables);
    // As in enqueue.
    const result = await this.queue.enqueueFrom(db, job, select, options as never);
    const jobs = await findWrittenJobs(db, tables, { kind: job.kind, after, written: true });
    await this.#run(
      db,
      jobs.map(({ id }) => ({ id, outcome: 'enqueued' })),
    );
    return result;
  };

  #check(db: Database, job: JobDefinition, options: GivenOptions | undefined): void {
    if (typeof db?.transaction !== 'function') throw new TypeError(`inline: ${NO_DATABASE}`);
    if (typeof job?.kind === 'string' && !this.handlers.has(job.kind)) {
      throw new UnknownKindError(`inline: there is no handler for the kind '${job.kind}'`);
    }
    if (this.delayed === 'refuse' && isForLater(options)) throw forLater(job?.kind);
  }

  async #run(db: Database, results: readonly Pick<LimitedEnqueueResult, 'id' | 'outcome'>[]): Promise<void> {
    const { tables } = this.queue;
    // A job that two entries are about has run after the first.
    const ids = new Set(results.map(({ id, outcome }) => (outcome === 'duplicate' ? undefined : id)));
    for (const id of ids) {
      if (id === undefined) continue;
      if (this.delayed === 'run') {
        const { queueJobs } = tables;
        const due = sql`update ${queueJobs} as j set run_at = statement_timestamp()
          where j.id = ${id}::int8 and j.run_at > statement_timestamp() and j.worker_id is null`;
        await queryRows(db, tables, sql`${due} returning j.id`);
      }
      const found = await this.queue.find(db, id);
      // Where the options do not say so: a `runAt` of each row, or what `replace` keeps.
      if (found?.state === 'scheduled' && this.delayed === 'refuse') throw forLater(found.kind);
      if (found?.state !== 'due') continue;
      const next = { id, queue: found.queue, group: found.group ?? undefined };
      const ran = await runJob(db, this.queue, this.handlers, next);
      if (this.failFast && ran?.outcome === 'failed') throw ran.error;
    }
  }
}

function forLater(kind: string): QueueError {
  return new QueueError(
    `inline: a job of '${kind}' is enqueued for later: ` +
      "give inline { delayed: 'run' } or { delayed: 'leave' }, or use drainIn with until",
  );
}

/** What the options say before anything is sent, by this process's clock. */
function isForLater(options: GivenOptions | undefined): boolean {
  const { delayMs = 0, runAt, debounce } = options ?? {};
  return delayMs > 0 || debounce !== undefined || (runAt instanceof Date && runAt.getTime() > Date.now());
}

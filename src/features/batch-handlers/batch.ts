import { goAround } from '../../core/job/go-around.ts';
import type { BatchAttemptContext } from '../../core/queue/enqueue/around.ts';
import type { BatchCall, BatchMember } from '../../core/worker/run/batch-call.ts';
import { runningJob } from '../../core/worker/run/context.ts';
import type { BatchHandler, UntypedBatchContext, UntypedBatchJob } from '../../core/worker/run/handler.ts';
import { BatchError, QueueError } from '../../errors.ts';
import { BatchCompletion } from './batch-completion.ts';
import { batchResults } from './batch-results.ts';

/** A job that waits for the batch's call, and for what becomes of it there. */
interface Entered {
  readonly payload: unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * One call of a batch handler. Each job is an attempt of its own, which validates its payload, may be ended
 * from outside and is settled alone; it *enters* the batch where another attempt calls its handler. When all
 * have entered or left, the handler is called once, for those that are there.
 */
export class Batch implements BatchCall {
  readonly #handler: BatchHandler;
  readonly #members: readonly BatchMember[];
  /** Neither entered nor left yet. */
  readonly #awaited: Set<BatchMember>;
  readonly #entered = new Map<BatchMember, Entered>();
  readonly #controller = new AbortController();
  /** Members in the call whose attempts have not been told to end. */
  readonly #untold = new Set<BatchMember>();
  /** Members in the call whose attempts are not over. */
  readonly #staying = new Set<BatchMember>();
  /** Rejects `next` of `around.runBatch`. */
  #giveUp: ((reason: unknown) => void) | undefined;
  #completion: BatchCompletion | undefined;

  /** @param members at least one */
  constructor(handler: BatchHandler, members: readonly BatchMember[]) {
    this.#handler = handler;
    this.#members = members;
    this.#awaited = new Set(members);
  }

  enter(member: BatchMember, payload: unknown): Promise<unknown> {
    const result = new Promise<unknown>((resolve, reject) => {
      this.#entered.set(member, { payload, resolve, reject });
    });
    this.#arrive(member);
    return result;
  }

  /** The attempt is over; if it has not entered, it never will. A call that all have left may hang. */
  leave(member: BatchMember): void {
    this.#arrive(member);
    if (this.#staying.delete(member) && this.#staying.size === 0) this.#giveUp?.(member.reason);
  }

  hasCompleted(member: BatchMember): boolean {
    return this.#completion?.has(member) ?? false;
  }

  /** An attempt was told to end. When all of them were, the call is aborted. */
  noteTold(member: BatchMember): void {
    if (!this.#untold.delete(member) || this.#untold.size > 0) return;
    member.inContext(() => this.#controller.abort(member.reason));
  }

  #arrive(member: BatchMember): void {
    if (this.#awaited.delete(member) && this.#awaited.size === 0) void this.#run();
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const present = this.#members.filter((member) => this.#isPresent(member));
    const [first] = present;
    if (first === undefined) return;
    for (const member of present) {
      this.#staying.add(member);
      if (member.reason === undefined) this.#untold.add(member);
    }
    if (this.#untold.size === 0) this.#controller.abort(first.reason);
    const completion = new BatchCompletion(this.#handler.job, present);
    this.#completion = completion;
    try {
      // Not in that of the job whose arrival has begun the call.
      const returned = await first.inContext(() => this.#call(first, present, completion));
      const caller = `The batch handler of '${this.#handler.job.kind}' returned`;
      const results = completion.results ?? batchResults(caller, returned, present.length);
      for (const [at, member] of present.entries()) this.#entered.get(member)?.resolve(results[at]);
    } catch (error) {
      this.#fail(present, error);
    }
  }

  /** One that was ended while others entered is not there any more. */
  #isPresent(member: BatchMember): boolean {
    const entered = this.#entered.get(member);
    try {
      if (entered !== undefined) member.checkOpen();
      return entered !== undefined;
    } catch (error) {
      entered?.reject(error);
      return false;
    }
  }

  async #call(
    first: BatchMember,
    present: readonly BatchMember[],
    completion: BatchCompletion,
  ): Promise<unknown> {
    const { db, around } = first.environment;
    const { signal } = this.#controller;
    const jobs = present.map((member) => shownJob(member, this.#entered.get(member)?.payload));
    const complete: UntypedBatchContext['complete'] = (tx, results) => completion.complete(tx, results);
    const call = async () => await this.#handler.run(jobs, { signal, db, complete });
    if (around?.runBatch === undefined) return await call();
    const argument: BatchAttemptContext = { jobs, signal, db };
    const step = async () => {
      // What the function around it awaits may take longer than the attempts.
      if (!present.some(isOpen)) first.checkOpen();
      return await new Promise((resolve, reject) => {
        this.#giveUp = reject;
        call().then(resolve, reject);
      });
    };
    // When the function around it throws, the handler that is left behind is told so.
    const onLeft = (error: unknown) => {
      const reason =
        error instanceof Error ? error : new QueueError('around.runBatch threw no Error', { cause: error });
      for (const member of present) member.end(reason);
    };
    return await goAround({ name: 'around.runBatch', around: around.runBatch, argument, step, onLeft });
  }

  #fail(present: readonly BatchMember[], error: unknown): void {
    const failures = failuresIn(error);
    const named = present.filter(({ job }) => failures?.has(job.id));
    // An id that does not belong to this batch would hide a job that has failed.
    const isKnown = failures !== undefined && named.length === failures.size;
    for (const member of present) {
      const entered = this.#entered.get(member);
      if (!isKnown) entered?.reject(error);
      else if (failures.has(member.job.id)) entered?.reject(failures.get(member.job.id));
      else entered?.resolve(undefined);
    }
  }
}

/** Anything can be thrown, even a proxy that throws when it is asked what it is. */
function failuresIn(thrown: unknown): ReadonlyMap<number, unknown> | undefined {
  try {
    return thrown instanceof BatchError ? thrown.failures : undefined;
  } catch {
    return undefined;
  }
}

function isOpen(member: BatchMember): boolean {
  try {
    member.checkOpen();
    return true;
  } catch {
    return false;
  }
}

/** The handler's own copy. Its signal, which many handlers do not use, is made on demand. */
function shownJob(member: BatchMember, payload: unknown): UntypedBatchJob {
  return {
    payload,
    job: runningJob(member),
    get signal() {
      return member.signal;
    },
  };
}

import { checkDefinition, type JobDefinition } from '../../../core/job/definition.ts';
import { describeThrown } from '../../../core/job/describe-error.ts';
import { checkOptions, namesOf } from '../../../core/job/known-options.ts';
import { checkBoolean, checkObject } from '../../../core/job/limits.ts';
import { shown } from '../../../core/job/shown.ts';
import { NonRetryableError } from '../../../errors.ts';
import type { MemberEnd } from '../../batches/queries/find-ends.ts';
import type {
  Child,
  ChildArguments,
  ChildEnd,
  ChildEntry,
  ChildOptions,
  Children,
  ParentCounts,
} from '../job/child.ts';
import { ChildFailedError, StepLimitError } from '../job/step-errors.ts';
import { END } from '../job/step-names.ts';
import {
  type AttemptSteps,
  type ChildrenToEnqueue,
  type EnqueuedChildren,
  isOver,
  type KnownStep,
} from './attempt-steps.ts';
import { Turns } from './turns.ts';

const OPTIONS = namesOf<ChildOptions>({ detached: true });
const MAX_CHILDREN = 10_000;
const RESULT_GONE = 'its result is gone, so how it ended is not known';

/** The jobs that one attempt enqueues, those that it waits for, and those that its job has waited for. */
export class StepChildren {
  readonly #steps: AttemptSteps;
  /** The batches of which a step of this attempt waits for the first failure, too. */
  readonly #failFast = new Set<number>();
  readonly #asking = new Turns<number>();

  constructor(steps: AttemptSteps) {
    this.#steps = steps;
  }

  async enqueue(
    name: string,
    job: JobDefinition,
    ...[payload, options = {}]: ChildArguments<JobDefinition>
  ): Promise<Child<never>> {
    const { detached, ...settings } = checkObject(`step '${name}': options`, options);
    const { batch, ids } = await this.#enqueue(name, job, [{ ...settings, payload }], { detached });
    // Of the kind that it was enqueued as.
    return { id: Number(ids[0]), job: job as never, step: name, batchId: batch };
  }

  async enqueueMany(
    name: string,
    job: JobDefinition,
    entries: readonly ChildEntry<JobDefinition>[],
    options: ChildOptions = {},
  ): Promise<Children<never>> {
    const { batch, ids } = await this.#enqueue(name, job, entries, options);
    // As in `enqueue`.
    return { ids, job: job as never, step: name, batchId: batch };
  }

  async addToFlow(
    name: string,
    job: JobDefinition,
    entries: readonly ChildEntry<JobDefinition>[],
  ): Promise<readonly number[]> {
    checkDefinition('step.addToFlow', job);
    return (await this.#enqueueAs(name, job, entries, 'members')).ids;
  }

  async waitForJob(child: Child): Promise<never> {
    const name = `${checkChild(child).step}${END}`;
    return (await this.#outputsOf(name, [child], ([output]) => output)) as never;
  }

  async all(name: string, children: Children | readonly Child[]): Promise<never> {
    return (await this.#outputsOf(name, children, (outputs) => outputs)) as never;
  }

  async allEnded(name: string, children: Children | readonly Child[]): Promise<never> {
    return await this.#steps.step(name, 'wait', async (found) => {
      if (isOver(found)) return this.#steps.outputOf(found) as never;
      const startMs = performance.now();
      const ends = await this.#endsOf(name, found, children, false);
      return (await this.#steps.record({ name, kind: 'wait', output: ends, startMs })) as never;
    });
  }

  async parents(job: JobDefinition): Promise<never> {
    checkDefinition('parents', job);
    const { kind } = job;
    return (await this.#steps.busy(async () => {
      const { batchIds } = await this.#steps.store.waited();
      return (await this.#steps.store.ends(batchIds, kind)).map(childEnd);
    })) as never;
  }

  async parentCounts(): Promise<ParentCounts> {
    const { total, failed } = await this.#steps.busy(() => this.#steps.store.waited());
    return { total, completed: total - failed, failed };
  }

  /** How a child has ended; `undefined`: it has not, and this job is known to wait for it. */
  async endOf(
    name: string,
    { id: childId, batchId, job }: Child,
  ): Promise<(ChildEnd & { readonly kind: string }) | undefined> {
    const ends = await this.#ended(name, { batchIds: [batchId], ids: [childId], failFast: false });
    if (ends === undefined) return undefined;
    return { ...(ends.get(childId) ?? gone(childId)), kind: job.kind };
  }

  async #enqueue(
    name: string,
    job: JobDefinition,
    entries: readonly ChildEntry<JobDefinition>[],
    options: ChildOptions,
  ): Promise<EnqueuedChildren> {
    checkDefinition('step.enqueue', job);
    const { detached = false } = checkOptions(`step '${name}': options`, options, OPTIONS);
    if (job.keepResult === false) {
      throw new TypeError(
        `step '${name}': '${job.kind}' has keepResult: false, so the step could not learn how it ended; ` +
          "write keepResult: 'outcome'",
      );
    }
    checkBoolean(`step '${name}': detached`, detached);
    return await this.#enqueueAs(name, job, entries, detached ? 'detached' : 'parent');
  }

  async #enqueueAs(
    name: string,
    job: JobDefinition,
    entries: readonly ChildEntry<JobDefinition>[],
    as: ChildrenToEnqueue['as'],
  ): Promise<EnqueuedChildren> {
    if (!Array.isArray(entries)) throw new TypeError(`step '${name}': entries must be an array`);
    if (entries.length > MAX_CHILDREN) {
      throw new StepLimitError(
        `The step '${name}' enqueues ${entries.length} jobs; the limit is ${MAX_CHILDREN}. ` +
          'Use queue.workflows.enqueueBatch in a step.transaction',
      );
    }
    return await this.#steps.step(name, 'enqueue', async (found) => {
      // Written below, in this shape.
      if (isOver(found)) return this.#steps.outputOf(found) as EnqueuedChildren;
      const startMs = performance.now();
      const jobs = await this.#steps.store.check(job, entries, name);
      const toStep = (children: EnqueuedChildren) => {
        const step = this.#steps.toRecord(name, 'enqueue', children, startMs);
        this.#steps.attempt.checkOpen();
        return step;
      };
      const enqueued = await this.#steps.store.enqueue({ step: name, jobs, entries, as, toStep });
      if (enqueued === undefined) throw this.#steps.lost();
      this.#steps.attempt.noteProgress();
      return enqueued;
    });
  }

  /** @param toStore what is recorded of their outputs */
  async #outputsOf(
    name: string,
    children: Children | readonly Child[],
    toStore: (outputs: readonly unknown[]) => unknown,
  ): Promise<unknown> {
    return await this.#steps.step(name, 'wait', async (found) => {
      if (isOver(found)) {
        // Written below, in these two shapes.
        if (found.error !== null) throw childFailed(found.output as FailedChild);
        return found.output;
      }
      const startMs = performance.now();
      const ends = await this.#endsOf(name, found, children, true);
      const failed = ends.find((end): end is FailedChild => end.state !== 'completed');
      if (failed !== undefined) {
        const error = childFailed(failed);
        await this.#steps.record({
          name,
          kind: 'wait',
          output: failed,
          startMs,
          error: describeThrown(error),
        });
        throw error;
      }
      const output = toStore(ends.map((end) => ('output' in end ? end.output : null)));
      return await this.#steps.record({ name, kind: 'wait', output, startMs });
    });
  }

  /** How children have ended, in their order; as long as they have not, this job waits. */
  async #endsOf(
    name: string,
    found: KnownStep | undefined,
    children: Children | readonly Child[],
    failFast: boolean,
  ): Promise<(ChildEnd & { readonly kind: string })[]> {
    const { batchIds, kinds } = idsOf(name, children);
    const wanted = { batchIds, ids: kinds.map(([id]) => id), failFast };
    // It has waited before, so they have probably ended.
    let ends = found === undefined ? new Map<number, ChildEnd>() : await this.#find(batchIds);
    if (!isAnswer(ends, wanted)) {
      const ended = await this.#ended(name, wanted);
      if (ended === undefined) {
        if (found === undefined) await this.#recordWait(name);
        return await this.#steps.wait(name, null);
      }
      ends = ended;
    }
    return kinds.flatMap(([id, kind]) => {
      const end = ends.get(id);
      if (end === undefined && failFast && hasFailed(ends)) return [];
      return [{ ...(end ?? gone(id)), kind }];
    });
  }

  /**
   * How children have ended; `undefined`: they have not, and this job is known to wait for them. One that has
   * no result although its batch is over may have been put back by itself: it is waited for as well.
   */
  async #ended(name: string, wanted: Wanted): Promise<Ends | undefined> {
    const { batchIds, ids, failFast } = wanted;
    for (let isBack = false; ; isBack = true) {
      if (await this.#waitFor(name, wanted, isBack)) return undefined;
      const ends = await this.#find(batchIds);
      if (isAnswer(ends, wanted)) return ends;
      const { id, fence } = this.#steps.attempt.job;
      const live = await this.#steps.store.reopen({ id, fence, batchIds });
      // What has ended since lives no more, and is found.
      const now = await this.#find(batchIds);
      const left = ids.filter((id) => !now.has(id));
      const isOneGone = left.some((id) => !live.has(id));
      if (isAnswer(now, wanted) || !left.some((id) => live.has(id)) || (failFast && isOneGone)) return now;
    }
  }

  async #find(batchIds: readonly number[]): Promise<Ends> {
    return new Map((await this.#steps.store.ends(batchIds)).map((end) => [end.id, childEnd(end)]));
  }

  /**
   * Whether there is something to wait for. Steps that wait for the same batch ask one after the other: how
   * the last one waits stands in its row, and must not hide that another one waits for a failure.
   *
   * @param isBack whether children are back: a failure that is counted may be that of an earlier end
   * @throws LeaseLostError
   * @throws NonRetryableError for children of another job, whose end would not wake this one
   */
  async #waitFor(name: string, { batchIds, failFast }: Wanted, isBack: boolean): Promise<boolean> {
    return await this.#asking.take(batchIds, async () => {
      const { id, fence, kind } = this.#steps.attempt.job;
      const isOpen = await this.#steps.store.waitFor({
        ...{ id, fence, batchIds },
        failFast: failFast && !isBack,
        isBesideFailFast: failFast || batchIds.some((batchId) => this.#failFast.has(batchId)),
      });
      if (isOpen === undefined) throw this.#steps.lost();
      if (isOpen === 'foreign') {
        throw new NonRetryableError(
          `step '${name}': job ${id} ('${kind}') did not enqueue the children that it waits for, so their ` +
            'end would not wake it. Wait in the job that enqueued them, and pass on what they return',
        );
      }
      if (isOpen && failFast) for (const batchId of batchIds) this.#failFast.add(batchId);
      return isOpen;
    });
  }

  /** Records that it waits, for the dashboard and `steps`. */
  async #recordWait(name: string): Promise<void> {
    const { id, fence } = this.#steps.attempt.job;
    const step = { id, fence, name, kind: 'wait', tookMs: 0, ended: false } as const;
    if ((await this.#steps.store.record(step)) === undefined) throw this.#steps.lost();
    this.#steps.attempt.noteProgress();
  }
}

/** The children that a step asks for, and their batches. */
interface Wanted {
  readonly batchIds: readonly number[];
  readonly ids: readonly number[];
  /** Whether the first failure is an answer, too. */
  readonly failFast: boolean;
}

/** How those have ended whose results are kept. */
type Ends = ReadonlyMap<number, ChildEnd>;

/** With `failFast` others may still run; one that has failed is there. */
function isAnswer(ends: Ends, { ids, failFast }: Wanted): boolean {
  return ids.every((id) => ends.has(id)) || (failFast && hasFailed(ends));
}

function hasFailed(ends: Ends): boolean {
  return [...ends.values()].some(({ state }) => state !== 'completed');
}

function gone(id: number): ChildEnd {
  return { id, state: 'gone', reason: RESULT_GONE };
}

/** A child that was not completed, as a step records it. */
export type FailedChild = Exclude<ChildEnd, { readonly state: 'completed' }> & { readonly kind: string };

export function childFailed({ id, kind, state, reason }: FailedChild): ChildFailedError {
  return new ChildFailedError(id, kind, state, reason);
}

function childEnd({ id, state, output, message = 'no reason was given' }: MemberEnd): ChildEnd {
  // What is stored has the type of what the handler returned.
  return state === 'completed' ? { id, state, output: output as never } : { id, state, reason: message };
}

/** For callers without TypeScript. @throws TypeError */
export function checkChild(child: Child): Child {
  const { id, step, batchId, job } = Object(child);
  if (typeof id === 'number' && typeof step === 'string' && typeof batchId === 'number') {
    checkDefinition('waitForJob', job);
    return child;
  }
  throw new TypeError(`waitForJob takes what step.enqueue has returned, got ${shown(child)}`);
}

/** The batches of children, and the ids of these with their kinds, in their order. */
function idsOf(
  name: string,
  children: Children | readonly Child[],
): {
  readonly batchIds: readonly number[];
  readonly kinds: readonly (readonly [id: number, kind: string])[];
} {
  if (Array.isArray(children)) {
    const all = (children as readonly Child[]).map(checkChild);
    const batchIds = [...new Set(all.map(({ batchId }) => batchId))];
    return { batchIds, kinds: all.map(({ id, job }) => [id, job.kind]) };
  }
  const { ids, batchId, job } = checkObject(`step '${name}': children`, children as Children);
  if (!Array.isArray(ids)) {
    throw new TypeError(`step '${name}' takes what step.enqueueMany has returned, got ${shown(children)}`);
  }
  return { batchIds: [batchId], kinds: ids.map((id) => [id, job.kind]) };
}

import { queueJobs, queuePauses, queueResults, queueWorkers } from '../../core/schema/index.ts';
import { queueMailboxes, queueSteps } from '../../features/workflows/schema/index.ts';
import type { Executor, JobDefinition, JobRecord, Queue, Workflows } from '../../index.ts';
import { checkDefinition } from '../../internal.ts';
import type { TablesOfWorkflows } from '../../testing-face.ts';
import { checkQueue } from './check-queue.ts';
import type { Equals } from './differences.ts';
import {
  checkExpected,
  differencesOf,
  type ExpectedCompletion,
  type ExpectedDiscard,
  type ExpectedJob,
  type GivenExpectation,
} from './expected-job.ts';
import { checkExpectedSteps, type ExpectedSteps, stepDifferences } from './expected-steps.ts';
import { type ComparedJob, explain, explainUnkept } from './explain.ts';
import { findWrittenJobs, hasEndedJobs } from './find-written-jobs.ts';
import { isTransaction } from './written-here.ts';

/** What a runner hands to a matcher, of that which these use: Vitest, Jest and Bun alike. */
export interface MatcherContext {
  readonly isNot?: boolean | undefined;
  readonly equals: Equals;
}

/** What a matcher returns. */
export interface MatcherResult {
  readonly pass: boolean;
  readonly message: () => string;
}

/** The matchers, as `expect.extend` takes them: a type, as an interface would lack its index signature. */
export type QueueMatchers = {
  toHaveEnqueued(
    this: MatcherContext,
    db: Executor,
    job: JobDefinition,
    expected?: GivenExpectation,
  ): Promise<MatcherResult>;
  toHaveCompleted(
    this: MatcherContext,
    db: Executor,
    job: JobDefinition,
    expected?: GivenExpectation,
  ): Promise<MatcherResult>;
  toHaveDiscarded(
    this: MatcherContext,
    db: Executor,
    job: JobDefinition,
    expected?: GivenExpectation,
  ): Promise<MatcherResult>;
  toHaveRecordedSteps(
    this: MatcherContext,
    db: Executor,
    job: JobDefinition,
    expected?: GivenExpectation,
  ): Promise<MatcherResult>;
};

/** The matchers, as a test calls them. */
export interface QueueAssertions {
  /**
   * That a job of a kind was enqueued, whatever became of it: in a transaction by that itself, in a database
   * by anyone. A job that has completed and whose kind keeps no result is not seen, and where it keeps only
   * the outcome, its payload is `undefined` by then: `not` and `times` fail where such a job may have run,
   * unless `ignoreUnkept` is `true`. On a database that is always so, in a transaction once it has ended a
   * job.
   */
  toHaveEnqueued<TJob extends JobDefinition>(job: TJob, expected?: ExpectedJob<TJob>): Promise<void>;
  /** That such a job has completed, and kept its result. */
  toHaveCompleted<TJob extends JobDefinition>(job: TJob, expected?: ExpectedCompletion<TJob>): Promise<void>;
  /** That such a job was discarded. */
  toHaveDiscarded<TJob extends JobDefinition>(job: TJob, expected?: ExpectedDiscard<TJob>): Promise<void>;
  /**
   * That such a job, whatever became of it, has recorded these steps, or waits in these. Without either, that
   * it has recorded any.
   */
  toHaveRecordedSteps<TJob extends JobDefinition>(job: TJob, expected?: ExpectedSteps<TJob>): Promise<void>;
}

declare global {
  // Jest and Vitest have this one interface for matchers of others, so neither need be there.
  namespace jest {
    // biome-ignore lint/complexity/noBannedTypes: as they declare it, or the declarations do not merge
    interface Matchers<R, T = {}> {
      // Not `extends`: a program that loads both module systems has two such types, which do not agree.
      /** See {@link QueueAssertions}. */
      toHaveEnqueued<TJob extends JobDefinition>(job: TJob, expected?: ExpectedJob<TJob>): Promise<void>;
      /** See {@link QueueAssertions}. */
      toHaveCompleted<TJob extends JobDefinition>(
        job: TJob,
        expected?: ExpectedCompletion<TJob>,
      ): Promise<void>;
      /** See {@link QueueAssertions}. */
      toHaveDiscarded<TJob extends JobDefinition>(job: TJob, expected?: ExpectedDiscard<TJob>): Promise<void>;
      /** See {@link QueueAssertions}. */
      toHaveRecordedSteps<TJob extends JobDefinition>(
        job: TJob,
        expected?: ExpectedSteps<TJob>,
      ): Promise<void>;
    }
  }
}

type Matcher = keyof QueueMatchers;

const LOOK_MS = 20;

/** The matchers for the tables of one queue, with its own columns: see {@link queueMatchers}. */
export function matchersOf(queue: Pick<Queue, 'tables'> & { readonly workflows?: unknown }): QueueMatchers {
  // Only its tables are used.
  checkQueue('matchersOf', queue as Queue);
  const { tables } = queue;
  // `createQueue` has put it there, or nothing.
  const workflows = queue.workflows as Pick<Workflows, 'tables'> | undefined;
  const find = async (db: Executor, kind?: string) =>
    await findWrittenJobs(db, tables, { kind, after: 0, written: isTransaction(db) });

  async function match(
    matcher: Matcher,
    context: MatcherContext,
    db: Executor,
    job: JobDefinition,
    expected: GivenExpectation = {},
  ): Promise<MatcherResult> {
    checkDefinition(matcher, job);
    const { isNot = false } = context;
    // Bun asks for its own `this`.
    const equals: Equals = (actual, wanted) => context.equals(actual, wanted);
    const { times, withinMs, ignoreUnkept } = checkExpected(matcher, expected);
    checkExpectedSteps(matcher, expected);
    const stepTables = matcher === 'toHaveRecordedSteps' ? tablesOfSteps() : undefined;
    const state = STATE[matcher];
    const endMs = performance.now() + withinMs;
    for (;;) {
      const found = await find(db, job.kind);
      const compared: ComparedJob[] = [];
      for (const record of found) {
        const differences = [
          ...(state === undefined || record.state === state
            ? []
            : [{ path: 'state', actual: record.state, expected: state }]),
          ...differencesOf(record, expected, equals),
        ];
        // Another job's steps say nothing.
        if (stepTables !== undefined && differences.length === 0)
          differences.push(...(await stepDifferences(db, stepTables, record.id, expected, equals)));
        compared.push({ record, differences });
      }
      const fitting = compared.filter(({ differences }) => differences.length === 0);
      const pass = times === undefined ? fitting.length > 0 : fitting.length === times;
      if (pass === isNot && performance.now() < endMs) {
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
        continue;
      }
      const isCounted = isNot || times !== undefined;
      if (isCounted && pass !== isNot && !ignoreUnkept && state !== 'discarded') {
        // A job that left nothing to see would make this assertion pass.
        if (await mayBeUnseen(db, job, compared)) {
          return { pass: isNot, message: () => explainUnkept(matcher, job) };
        }
      }
      const others = found.length === 0 ? await find(db) : [];
      const message = () => explain(matcher, { job, expected, compared, others, pass });
      return { pass, message };
    }
  }

  function tablesOfSteps(): TablesOfWorkflows {
    if (workflows !== undefined) return { ...tables, ...workflows.tables };
    throw new TypeError('toHaveRecordedSteps needs a queue with workflows: matchersOf(queue)');
  }

  async function mayBeUnseen(
    db: Executor,
    { keepResult }: JobDefinition,
    compared: readonly ComparedJob[],
  ): Promise<boolean> {
    if (keepResult === false) return !isTransaction(db) || (await hasEndedJobs(db, tables));
    return compared.some(
      ({ record, differences }) =>
        record.payload === undefined &&
        differences.length > 0 &&
        differences.every(({ path }) => path.startsWith('payload')),
    );
  }

  return {
    toHaveEnqueued(db, job, expected) {
      return match('toHaveEnqueued', this, db, job, expected);
    },
    toHaveCompleted(db, job, expected) {
      return match('toHaveCompleted', this, db, job, expected);
    },
    toHaveDiscarded(db, job, expected) {
      return match('toHaveDiscarded', this, db, job, expected);
    },
    toHaveRecordedSteps(db, job, expected) {
      return match('toHaveRecordedSteps', this, db, job, expected);
    },
  };
}

const STATE: Readonly<Record<Matcher, JobRecord['state'] | undefined>> = {
  toHaveEnqueued: undefined,
  toHaveCompleted: 'completed',
  toHaveDiscarded: 'discarded',
  toHaveRecordedSteps: undefined,
};

/**
 * Matchers for `expect.extend` of Vitest, Jest and Bun, over the tables of `drizzle-queue/schema` and
 * `drizzle-queue/schema/workflows`; for others {@link matchersOf}. Each is awaited, and takes a transaction
 * or a database.
 *
 * ```ts
 * expect.extend(queueMatchers);
 * await expect(tx).toHaveEnqueued(sendReceipt, { payload: { orderId: 1 }, runIn: { minutes: 5 } });
 * await expect(tx).not.toHaveDiscarded(sendReceipt);
 * ```
 *
 * A failure prints the jobs that came nearest, and in what they differ.
 */
export const queueMatchers: QueueMatchers = /* @__PURE__ */ matchersOf({
  tables: { queueJobs, queueResults, queueWorkers, queuePauses },
  workflows: { tables: { queueSteps, queueMailboxes } },
});

import { createQueue, workflowsIn } from 'drizzle-queue';
import { queueJobs, queuePauses, queueResults, queueWorkers } from 'drizzle-queue/schema';
import * as workflowTables from 'drizzle-queue/schema/workflows';
import { expect } from 'vitest';
import type { ClaimedJob } from '../../src/core/queries/claim/claim-jobs.ts';
import { registerWorker } from '../../src/core/queries/presence/register-worker.ts';
import type { QueueOfWorkflows } from '../../src/core/queue/queue-workflows.ts';
import { inContext } from '../../src/core/sql/statement-context.ts';
import type { Connection } from '../support/test-database.ts';
import { oneOf } from './one-of.ts';
import type { SingleWorkflowStep } from './workflow-happenings.ts';
import { type Attempt, WorkflowModel } from './workflow-model.ts';
import {
  expectInvariants,
  expectWorkflowsAsModelled,
  readWorkflows,
  type SeenBefore,
  type WorkflowState,
} from './workflow-state.ts';

let workflowsOf: QueueOfWorkflows | undefined;
function makeWorkflows(made: QueueOfWorkflows) {
  workflowsOf = made;
  return workflowsIn(workflowTables)(made);
}
const queue = createQueue({
  tables: { queueJobs, queueResults, queueWorkers, queuePauses },
  workflows: makeWorkflows,
});

/** What the statements of workflows want: the tables, with what hangs on the end of a member. */
const ending = queue.workflows.statementTables;
const tables = inContext({ ...ending, ...workflowTables }, {});

export interface WorkflowWorldOptions {
  readonly app: Connection;
  /** The connection of a transaction that stays open for a while. */
  readonly transaction: Connection;
  readonly workers: readonly Connection[];
  readonly saw: (event: string) => void;
}

/** An attempt, with what a worker has of its job. */
export type WorkflowAttempt = Attempt & { readonly job: ClaimedJob };

/** The database as several connections see it, and beside it the model of what it must hold. */
export class WorkflowWorld {
  readonly app: Connection;
  readonly transaction: Connection;
  readonly workers: readonly Connection[];
  readonly saw: (event: string) => void;
  readonly queue = queue;
  readonly workflowsOf = workflowsOf as QueueOfWorkflows;
  readonly ending = ending;
  readonly tables = tables;
  readonly model = new WorkflowModel();
  readonly workerIds: number[] = [];
  readonly attempts: WorkflowAttempt[] = [];
  /** The value of the last signal. */
  lastValue = 0;
  /** Set by the walk. */
  takeAll: (steps: readonly SingleWorkflowStep[]) => Promise<void> = async () => {};
  readonly #seen: SeenBefore = { steps: new Map(), ends: new Map() };

  constructor({ app, transaction, workers, saw }: WorkflowWorldOptions) {
    this.app = app;
    this.transaction = transaction;
    this.workers = workers;
    this.saw = saw;
  }

  async register(index: number): Promise<void> {
    const { db } = oneOf(this.workers, index);
    const id = await registerWorker(db, queue.tables, { name: `w${index}`, queues: [] });
    this.workerIds[index % this.workers.length] = id;
    this.model.livingWorkers.add(id);
  }

  read(): Promise<WorkflowState> {
    return readWorkflows(this.app.client);
  }

  async compare(): Promise<void> {
    const state = await this.read();
    expectWorkflowsAsModelled(state, this.model);
    expectInvariants(state, this.model, this.#seen);
  }

  /** One that its worker has not ended; `stale`: one that may have lost its job. Jobs that are locked are left out. */
  attempt(index: number, stale = false): WorkflowAttempt | undefined {
    const { model } = this;
    const free = this.attempts.filter(({ id, isOver }) => !isOver && !model.lockedJobs.has(id));
    const some = free.filter((attempt) => stale || model.holds(attempt));
    return some.length === 0 ? undefined : oneOf(some, index);
  }

  job<T extends { readonly id: number }>(jobs: readonly T[], index: number): T | undefined {
    const free = jobs.filter(({ id }) => !this.model.lockedJobs.has(id));
    return free.length === 0 ? undefined : oneOf(free, index);
  }

  /** Takes steps while an open transaction has locked these. */
  async whileLocked(
    locked: { jobs?: readonly number[]; batches?: readonly number[]; boxes?: readonly string[] },
    steps: readonly SingleWorkflowStep[],
  ): Promise<void> {
    const { model } = this;
    model.lockedJobs = new Set(locked.jobs);
    model.lockedBatches = new Set(locked.batches);
    model.lockedBoxes = new Set(locked.boxes);
    await this.compare();
    await this.takeAll(steps);
    model.lockedJobs = new Set();
    model.lockedBatches = new Set();
    model.lockedBoxes = new Set();
  }

  /** Learns the jobs, batches and waits that were just made, and that they are as they must be. */
  async learn(flow: number | null): Promise<WorkflowState> {
    const state = await this.read();
    const { model } = this;
    for (const { id, total, pending, flow: of, endedAt } of state.batches) {
      if (model.batches.has(id)) continue;
      expect([of, pending], `batch ${id}`).toEqual([flow, total]);
      expect(endedAt !== null).toBe(total === 0);
      model.open(id, total, of);
    }
    for (const { id, queue, batch, blockers, run } of state.jobs)
      if (!model.jobs.has(id)) model.add({ id, queue, batch, blockers }, run);
    for (const { batch, job, policy } of state.waits) {
      if (model.waits.some((wait) => wait.batch === batch && wait.job === job)) continue;
      // Written by the library alone.
      model.waits.push({ batch, job, policy: policy as never });
    }
    return state;
  }
}

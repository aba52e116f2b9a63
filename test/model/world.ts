import { createQueue, limitsIn, schedulesIn } from 'drizzle-queue';
import { queueJobs, queuePauses, queueResults, queueWorkers } from 'drizzle-queue/schema';
import * as control from 'drizzle-queue/schema/control';
import type { FaultPoint } from '../../src/core/sql/fault-point.ts';
import type { DeclaredQueueLimits } from '../../src/features/limits/settings/limit-settings.ts';
import type { Connection } from '../support/test-database.ts';
import { GroupModel } from './group-model.ts';
import type { SingleStep } from './happenings.ts';
import { interrupted } from './interrupted.ts';
import { JobModel } from './job-model.ts';
import { KeyModel } from './key-model.ts';
import type { ModelJob } from './model-job.ts';
import { oneOf } from './one-of.ts';
import { PastClaims } from './past-claims.ts';
import {
  expectAsModelled,
  expectSchedulesAsModelled,
  expectSound,
  learnSchedules,
  readState,
} from './queue-state.ts';
import { ScheduleModel } from './schedule-model.ts';

const { queueSchedules, queueKeys: keys } = control;
const tables = { queueJobs, queueResults, queueWorkers, queuePauses };

/** The queues of a process that knows these limits. */
function queueWith(limits: Readonly<Record<string, DeclaredQueueLimits>>) {
  return createQueue({
    tables,
    keys,
    schedules: schedulesIn(queueSchedules),
    limits: limitsIn(control, limits),
  });
}

/** The queues of a process that declares no limits. */
export const unaware = queueWith({});

/** By whom and how a {@link World} is changed. */
export interface WorldOptions {
  /** The connection of whoever enqueues. */
  readonly app: Connection;
  /** The connection of whoever holds a transaction open. */
  readonly transaction: Connection;
  /** One connection per worker. */
  readonly workers: readonly Connection[];
  /** Is told what has happened. */
  readonly saw: (event: string) => void;
  /** Makes things happen, one after the other. */
  readonly takeAll: (steps: readonly SingleStep[]) => Promise<void>;
  /** Of the queues that have groups. @default none */
  readonly limits?: Readonly<Record<string, DeclaredQueueLimits>>;
}

/** The database as several connections see it, and beside it the model of what it must hold. */
export class World {
  readonly app: Connection;
  readonly transaction: Connection;
  readonly workers: readonly Connection[];
  readonly saw: (event: string) => void;
  readonly takeAll: (steps: readonly SingleStep[]) => Promise<void>;
  readonly queue: ReturnType<typeof queueWith>;
  readonly tables: typeof this.queue.tables;
  readonly scheduleTables: typeof this.queue.schedules.tables;
  readonly model: JobModel;
  readonly schedules = new ScheduleModel();
  readonly keys = new KeyModel();
  readonly claims = new PastClaims();
  /** The id that each worker goes by now, and every id that one ever had. */
  readonly workerIds: number[] = [];
  readonly everyWorkerId: number[] = [];
  /** The database's clock at the last comparison. */
  nowUs = 0;
  /** What a claim of groups has taken whose transaction is open, if there is one: it may have locked any group. */
  pending: readonly ModelJob[] | undefined;
  readonly #highestFences = new Map<number, number>();

  constructor({ app, transaction, workers, saw, takeAll, limits = {} }: WorldOptions) {
    this.app = app;
    this.transaction = transaction;
    this.workers = workers;
    this.saw = saw;
    this.takeAll = takeAll;
    this.queue = queueWith(limits);
    this.tables = this.queue.tables;
    this.scheduleTables = this.queue.schedules.tables;
    this.model = new JobModel(new GroupModel(limits));
  }

  /** Both hold the same; times that the model could not know it has learnt. */
  async compare(): Promise<void> {
    const state = await readState(this.app.client);
    expectSound(state, this.#highestFences);
    expectAsModelled(state, this.model, this.nowUs);
    expectSchedulesAsModelled(state, this.schedules, this.nowUs);
    this.nowUs = state.nowUs;
  }

  /** Learns the times of schedules in the middle of an operation, of which the model may not know all yet. */
  async learn(): Promise<void> {
    const state = await readState(this.app.client);
    learnSchedules(state, this.schedules, this.nowUs);
  }

  /** The database's clock. */
  async now(): Promise<number> {
    const [row] = await this.app.client<[{ us: string }]>`
      select (extract(epoch from statement_timestamp()) * 1000000)::int8 as us`;
    return Number(row.us);
  }

  /** How the jobs of a queue with groups are claimed. */
  groupsOf(queue: string) {
    const { declared, tables } = this.queue.limits;
    const limits = declared.get(queue);
    if (limits === undefined || !this.queue.limits.isGrouped(queue))
      throw new Error(`'${queue}' has no groups`);
    const { concurrency, rate, serial } = limits.groups ?? {};
    return { tables: { ...tables, ...this.tables }, limits: { concurrency, rate }, serial };
  }

  anyJob(index: number, matches: (job: ModelJob) => boolean = () => true): ModelJob | undefined {
    const jobs = [...this.model.jobs.values()].filter(matches);
    return jobs.length === 0 ? undefined : oneOf(jobs, index);
  }

  /** Takes steps while an open transaction has the rows of these jobs locked. */
  async whileLocked(ids: readonly number[], steps: readonly SingleStep[]): Promise<void> {
    this.model.locked = new Set(ids);
    if (steps.length > 0) this.saw('while a transaction is open');
    await this.takeAll(steps);
    this.model.locked = new Set();
  }

  /** See {@link interrupted}. */
  async interrupted<T>(
    run: () => Promise<T>,
    between: Partial<Record<FaultPoint, () => Promise<void>>>,
    giveUp?: AbortController,
  ): Promise<T> {
    return await interrupted(run, between, this.saw, giveUp);
  }
}

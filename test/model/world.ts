import { createQueue, schedulesIn } from 'drizzle-queue';
import { queueJobs, queuePauses, queueResults, queueWorkers } from 'drizzle-queue/schema';
import { queueSchedules } from 'drizzle-queue/schema/control';
import type { FaultPoint } from '../../src/sql/fault-point.ts';
import type { Connection } from '../support/test-database.ts';
import type { SingleStep } from './happenings.ts';
import { interrupted } from './interrupted.ts';
import { JobModel, type ModelJob } from './job-model.ts';
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

export const tables = { queueJobs, queueResults, queueWorkers, queuePauses };
export const scheduleTables = { ...tables, queueSchedules };
export const queue = createQueue({ tables, schedules: schedulesIn(queueSchedules) });

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
}

/** The database as several connections see it, and beside it the model of what it must hold. */
export class World {
  readonly app: Connection;
  readonly transaction: Connection;
  readonly workers: readonly Connection[];
  readonly saw: (event: string) => void;
  readonly takeAll: (steps: readonly SingleStep[]) => Promise<void>;
  readonly model = new JobModel();
  readonly schedules = new ScheduleModel();
  readonly claims = new PastClaims();
  /** The id that each worker goes by now, and every id that one ever had. */
  readonly workerIds: number[] = [];
  readonly everyWorkerId: number[] = [];
  /** The database's clock at the last comparison. */
  nowUs = 0;
  readonly #highestFences = new Map<number, number>();

  constructor({ app, transaction, workers, saw, takeAll }: WorldOptions) {
    this.app = app;
    this.transaction = transaction;
    this.workers = workers;
    this.saw = saw;
    this.takeAll = takeAll;
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

  anyJob(index: number, matches: (job: ModelJob) => boolean = () => true): ModelJob | undefined {
    const jobs = [...this.model.jobs.values()].filter(matches);
    return jobs.length === 0 ? undefined : oneOf(jobs, index);
  }

  /** Takes steps while an open transaction has a job's row locked. */
  async whileLocked(id: number | undefined, steps: readonly SingleStep[]): Promise<void> {
    this.model.lockedId = id;
    if (steps.length > 0) this.saw('while a transaction is open');
    await this.takeAll(steps);
    this.model.lockedId = undefined;
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

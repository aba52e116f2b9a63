import type { DueAnswer } from '../../queries/claim/find-due.ts';
import type { Runner } from '../../sql/executor.ts';
import type { Holder } from '../../sql/fence.ts';
import type { Retries } from '../../time/retries.ts';
import type { WorkerEmitter } from '../base/events.ts';
import type { Until } from '../base/until.ts';
import type { Demand } from '../begin/demand.ts';
import type { Gate } from '../begin/gate.ts';
import type { Runs } from '../begin/runs.ts';
import type { HandlerHolds } from '../settle/handler-holds.ts';
import type { WorkerRunner } from '../statements/statements.ts';
import type { ClaimTries } from './claim-tries.ts';
import type { QueueClaims } from './claims.ts';

export interface GroupClaimsOptions {
  readonly runner: WorkerRunner;
  readonly queue: string;
  readonly workerId: number;
  readonly kinds: readonly string[];
  readonly gate: Gate | undefined;
  readonly demand: Pick<Demand, 'size' | 'ofKind' | 'perGroup' | 'beginning'>;
  /** One that ends when nothing is due has to look at all that is. */
  readonly until: Until;
  /** @default none: a claim that is refused fails */
  readonly tries?: ClaimTries | undefined;
}

export interface HandlerHoldsOptions {
  readonly db: Runner;
  readonly holder: Holder;
  readonly events: WorkerEmitter;
  readonly retries: Retries;
  /** Aborted when nothing is to be sent any more. */
  readonly giveUp: AbortSignal;
}

/** Claims of a queue whose jobs are in groups. */
export interface GroupClaims extends QueueClaims {
  /** Whether jobs of a group may wait for the end of another, which nothing tells but a claim. */
  readonly awaitsEnds: boolean;
  /** Told of a job: it may be in a group that claims have just passed. */
  noteTold(): void;
  /** Workers are gone: jobs that they held may be free. A drain is over only once this was looked at. */
  seekFreed(): void;
}

/** How the jobs of a queue are claimed and run where they are in groups. */
export interface ClaimGroups {
  /** Whether a job that is retried keeps its place, and those of its group wait for it. */
  readonly keepPlaces: boolean;
  readonly runs: Runs;
  claims(options: GroupClaimsOptions): GroupClaims;
  handlerHolds(options: HandlerHoldsOptions): HandlerHolds;
  /** Asks for such queues when a claim is next worth its statements. */
  findDue(runner: Runner, queues: readonly string[]): Promise<DueAnswer[]>;
}

import type { Runner } from '../../sql/executor.ts';
import type { Retries } from '../../time/retries.ts';
import type { WorkerEmitter } from '../base/events.ts';
import type { Gate } from '../begin/gate.ts';
import type { AttemptEnvironment } from '../run/attempt.ts';
import type { Handler } from '../run/handler.ts';
import type { WorkerRunner } from '../statements/statements.ts';
import type { ClaimGroups } from './claim-groups.ts';
import type { Sweeper } from './sweeper.ts';
import type { Watch } from './watch.ts';

/** What the loop of one queue works with. */
export interface ClaimLoopOptions {
  readonly environment: AttemptEnvironment & { readonly workerId: number };
  /** Runs the claims, and what begins jobs. */
  readonly claims: WorkerRunner;
  readonly settlements: WorkerRunner;
  /** Runs what is seldom asked: what is still held, and what became of a job. */
  readonly questions: Runner;
  /** Whether peers may take this worker for gone: until it has an answer, nothing is claimed or begins. */
  readonly isCutOff: () => boolean;
  readonly queue: string;
  readonly kinds: readonly string[];
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly concurrency: number;
  /** Where its jobs are in groups. */
  readonly groups?: ClaimGroups | undefined;
  /** How long a job is due until it counts as one priority better; `undefined`: that never changes. */
  readonly agingMs: number | undefined;
  /** `undefined` where a job begins as soon as a slot is free. */
  readonly gate: Gate | undefined;
  readonly pollIntervalMs: number;
  readonly events: WorkerEmitter;
  /** What wakes the loop when its queue is idle; without one it ends when no job is due and none is held. */
  readonly watch: Watch | undefined;
  readonly sweeper: Sweeper;
  readonly retries: Retries;
  /** Aborted when settling must no longer be repeated. */
  readonly giveUp: AbortSignal;
}

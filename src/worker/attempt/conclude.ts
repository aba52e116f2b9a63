import { withoutQuery } from '../../job/describe-error.ts';
import type { Outcome } from '../../job/outcome.ts';
import { type Transition, transitionFor } from '../../job/transition.ts';
import { hasEnded } from '../../queries/has-ended.ts';
import { announce } from './announce.ts';
import type { Attempt } from './attempt.ts';
import type { WorkerEmitter } from './events.ts';
import { outcomeIfStillHeld } from './execute-job.ts';
import type { SettleResult, Settler } from './settle.ts';

export interface ConcludeOptions {
  readonly settler: Settler;
  readonly events: WorkerEmitter;
  /** Called with an attempt of which nothing could be written: its job stays held. */
  readonly onUnwritten: (attempt: Attempt) => void;
}

/** Writes how an attempt has ended, then announces it. Never rejects. */
export async function conclude(
  options: ConcludeOptions,
  attempt: Attempt,
  outcome: Outcome,
  durationMs: number,
): Promise<void> {
  try {
    await writeAndAnnounce(options, attempt, outcome, durationMs);
  } catch (refusal) {
    // The database refuses the outcome itself (an output that is too large, say): then the attempt has failed.
    // Drizzle's error around the driver's repeats the parameters, and the output is among them.
    const outcome: Outcome = { type: 'failed', error: withoutQuery(refusal) };
    await writeAndAnnounce(options, attempt, outcome, durationMs).catch((error: unknown) =>
      settlingFailed(options, attempt, error),
    );
  }
}

/** Puts a job back as it was before its claim: it never began. Never rejects. */
export async function giveBack(options: ConcludeOptions, attempt: Attempt): Promise<void> {
  const { job } = attempt;
  try {
    const settled = await write(options, attempt, transitionFor({ type: 'interrupted' }, attempt.facts));
    if (typeof settled === 'object') options.events.emit('cancelled', { job, reason: settled.cancelled });
  } catch (error) {
    settlingFailed(options, attempt, error);
  }
}

async function writeAndAnnounce(
  options: ConcludeOptions,
  attempt: Attempt,
  outcome: Outcome,
  durationMs: number,
): Promise<void> {
  const outcomeToWrite = outcomeIfStillHeld(attempt, outcome);
  const transition = transitionFor(outcomeToWrite, attempt.facts);
  const settled = await write(options, attempt, transition);
  const completedByHandler = settled === 'lost' && (await handlerHasEnded(options, attempt, outcome));
  announce(options.events, attempt, outcomeToWrite, { transition, settled, completedByHandler, durationMs });
}

/** Whether a job that is no longer held has been ended by the handler's own transaction, and not been lost. */
async function handlerHasEnded(
  { events }: ConcludeOptions,
  { completeRan, environment, job }: Attempt,
  outcome: Outcome,
): Promise<boolean> {
  if (!completeRan) return false;
  // A handler returns when its transaction has committed. One that throws may have lost the answer to its COMMIT.
  if (outcome.type === 'completed') return true;
  try {
    return await hasEnded(environment.db, environment.tables, job);
  } catch (error) {
    events.emit('error', { error, during: `asking what became of job ${job.id} of '${job.queue}'` });
    return false;
  }
}

function write(
  { settler }: ConcludeOptions,
  { job, completeRan }: Attempt,
  transition: Transition,
): Promise<SettleResult> {
  const settlement = { id: job.id, fence: job.fence, transition };
  return completeRan ? settler.settleAlone(settlement) : settler.settle(settlement);
}

function settlingFailed({ events, onUnwritten }: ConcludeOptions, attempt: Attempt, error: unknown): void {
  const { job } = attempt;
  onUnwritten(attempt);
  events.emit('error', { error, during: `settling job ${job.id} of '${job.queue}'` });
}

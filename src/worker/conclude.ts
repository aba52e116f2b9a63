import { withoutQuery } from '../job/describe-error.ts';
import type { Outcome } from '../job/outcome.ts';
import { type Transition, transitionFor } from '../job/transition.ts';
import { announce } from './announce.ts';
import type { Attempt } from './attempt.ts';
import type { Settled, Settler } from './settle-jobs.ts';
import type { WorkerEmitter } from './worker-events.ts';

export interface ConcludeOptions {
  readonly settler: Settler;
  readonly events: WorkerEmitter;
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
  const transition = transitionFor(outcome, attempt.facts);
  const settled = await write(options, attempt, transition);
  announce(options.events, attempt, outcome, { transition, settled, durationMs });
}

function write(
  { settler }: ConcludeOptions,
  { job, completeRan }: Attempt,
  transition: Transition,
): Promise<Settled> {
  const settlement = { id: job.id, fence: job.fence, transition };
  return completeRan ? settler.settleAlone(settlement) : settler.settle(settlement);
}

function settlingFailed({ events }: ConcludeOptions, { job }: Attempt, error: unknown): void {
  // It stays held until this worker stops, and is given back then.
  events.emit('error', { error, during: `settling job ${job.id} of '${job.queue}'` });
}

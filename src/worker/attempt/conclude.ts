import { withoutQuery } from '../../job/describe-error.ts';
import type { Outcome } from '../../job/outcome.ts';
import { type Transition, transitionFor, verdictOn } from '../../job/transition.ts';
import type { ClaimedJob } from '../../queries/claim-jobs.ts';
import { findFates } from '../../queries/find-fates.ts';
import { sleep } from '../time/sleep.ts';
import { announce } from './announce.ts';
import type { Attempt } from './attempt.ts';
import type { WorkerEmitter } from './events.ts';
import { isAboutAccess } from './refusal.ts';
import type { Settler } from './settle.ts';
import type { SettleResult } from './settlement.ts';

export interface ConcludeOptions {
  readonly settler: Settler;
  readonly events: WorkerEmitter;
  /** Called when a job was put back, due after a delay or where it was (`undefined`). */
  readonly onPutBack: (job: ClaimedJob, delayMs: number | undefined) => void;
  /** Called with an attempt of which nothing could be written: its job stays held. */
  readonly onUnwritten: (attempt: Attempt) => void;
  /** Aborted when what the database refuses is to be left as it is, and tried again no more. */
  readonly leave: AbortSignal;
}

const FIRST_AGAIN_MS = 1_000;
const MAX_AGAIN_MS = 60_000;

/** Writes how an attempt has ended, then announces it. Never rejects. */
export async function conclude(
  options: ConcludeOptions,
  attempt: Attempt,
  outcome: Outcome,
  durationMs: number,
): Promise<void> {
  await untilAccepted(options, attempt, async (alone) => {
    try {
      await writeAndAnnounce(options, attempt, outcome, durationMs, alone);
    } catch (refusal) {
      if (isAboutAccess(refusal)) throw refusal;
      // The database refuses the outcome itself (an output that is too large, say): then the attempt has failed.
      // Drizzle's error around the driver's repeats the parameters, and the output is among them.
      const failed: Outcome = { type: 'failed', error: withoutQuery(refusal) };
      await writeAndAnnounce(options, attempt, failed, durationMs, true);
    }
  });
}

/** Puts a job back as it was before its claim: it never began. Never rejects. */
export async function giveBack(options: ConcludeOptions, attempt: Attempt): Promise<void> {
  const outcome = verdictOn({ type: 'interrupted' }, attempt.facts);
  const transition = transitionFor(outcome, attempt.facts);
  await untilAccepted(options, attempt, async (alone) => {
    const settled = await write(options, attempt, transition, alone);
    if (settled === 'abandoned') options.onUnwritten(attempt);
    // It has not begun, so its loss is of no interest.
    if (settled === 'abandoned' || settled === 'lost') return;
    announce(options.events, attempt, outcome, {
      transition,
      settled,
      completedByHandler: false,
      durationMs: 0,
    });
  });
}

/**
 * Tries until the database accepts what is written: a missing grant may be given, a trigger mended. Every further try is alone
 * in its statements, so that it holds up no batch.
 */
async function untilAccepted(
  { events, leave, onUnwritten }: ConcludeOptions,
  attempt: Attempt,
  tryOnce: (alone: boolean) => Promise<void>,
): Promise<void> {
  const { job } = attempt;
  for (let delayMs = FIRST_AGAIN_MS, alone = false; ; delayMs = Math.min(delayMs * 2, MAX_AGAIN_MS)) {
    try {
      await tryOnce(alone);
      return;
    } catch (error) {
      events.emit('error', { error, during: `settling job ${job.id} of '${job.queue}'` });
    }
    // It stays held until the worker has stopped, and is given back then.
    if (leave.aborted) {
      onUnwritten(attempt);
      return;
    }
    alone = true;
    await sleep(delayMs, leave);
  }
}

async function writeAndAnnounce(
  options: ConcludeOptions,
  attempt: Attempt,
  outcome: Outcome,
  durationMs: number,
  alone: boolean,
): Promise<void> {
  const verdict = verdictOn(outcome, attempt.facts);
  const transition = transitionFor(verdict, attempt.facts);
  const settled = await write(options, attempt, transition, alone);
  if (settled === 'abandoned') {
    options.onUnwritten(attempt);
    return;
  }
  const completedByHandler = settled === 'lost' && (await handlerHasEnded(options, attempt, outcome));
  announce(options.events, attempt, verdict, { transition, settled, completedByHandler, durationMs });
}

/** Whether a job that is no longer held has been ended by the handler's own transaction, and not been lost. */
async function handlerHasEnded(
  { events }: ConcludeOptions,
  { completeRan, environment, job }: Attempt,
  outcome: Outcome,
): Promise<boolean> {
  if (!completeRan) return false;
  // A handler returns when its transaction has committed. One that throws may have lost the answer to its COMMIT.
  if (outcome.type === 'committed') return true;
  try {
    const fate = (await findFates(environment.db, environment.tables, job.queue, [job])).get(job.id);
    // A completion that keeps no result leaves nothing.
    return fate === undefined || (fate.state !== null && fate.fence === job.fence);
  } catch (error) {
    events.emit('error', { error, during: `asking what became of job ${job.id} of '${job.queue}'` });
    return false;
  }
}

async function write(
  { settler, onPutBack }: ConcludeOptions,
  { job, completeRan }: Attempt,
  transition: Transition,
  alone: boolean,
): Promise<SettleResult> {
  const settlement = { id: job.id, fence: job.fence, transition };
  const settled = await (completeRan || alone ? settler.settleAlone(settlement) : settler.settle(settlement));
  if (settled === 'written' && transition.type === 'reschedule')
    onPutBack(job, transition.delayMs ?? undefined);
  return settled;
}

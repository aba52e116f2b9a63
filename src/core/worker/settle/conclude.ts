import { withoutQuery } from '../../job/describe-error.ts';
import { NO_GROUP } from '../../job/group.ts';
import type { Outcome } from '../../job/outcome.ts';
import { type Transition, transitionFor, type Verdict, verdictOn } from '../../job/transition.ts';
import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import { Doubling } from '../../time/doubling.ts';
import { sleep } from '../../time/sleep.ts';
import { isAboutAccess, isCancelled } from '../base/refusal.ts';
import type { Attempt } from '../run/attempt.ts';
import {
  type AfterCompleteOptions,
  handlerHasEnded,
  writeIfHeld,
  writeUnlessCompleted,
} from './after-complete.ts';
import { announce, type EndResult, endedOf } from './announce.ts';
import type { HandlerHolds } from './handler-holds.ts';
import { isCancelledInstead, type SettlementListener } from './settlement.ts';
import { transitionOf } from './transition-of.ts';

export interface ConcludeOptions extends AfterCompleteOptions {
  /** Called when a job was put back, due after a delay or where it was (`undefined`). */
  readonly onPutBack: (job: ClaimedJob, delayMs: number | undefined) => void;
  /** Called with an attempt of which nothing could be written: its job stays held. */
  readonly onLeftover: (attempt: Attempt) => void;
  /** Called when nothing more is written about an attempt that has ended. */
  readonly onConcluded: (attempt: Attempt, conclusion: Conclusion) => void;
}

/**
 * What became of the job of an attempt that was concluded: it was completed or cancelled; it was put back or
 * discarded; or it was lost, or nothing is known.
 */
export type Conclusion = 'over' | 'not over' | 'unknown';

interface Concluded {
  readonly verdict: Verdict;
  readonly transition: Transition;
  readonly durationMs: number;
}

/** Writes how an attempt has ended, then announces it; throws nothing. */
export function conclude(
  options: ConcludeOptions,
  attempt: Attempt,
  outcome: Outcome,
  durationMs: number,
): void {
  if (attempt.completeRan) {
    void concludeCompleted(options, attempt, outcome, durationMs);
    return;
  }
  const concluding = new Concluding(options, attempt, outcome, durationMs);
  options.settler.settleFor(attempt.job, concluding.transition, concluding);
}

/** Asks first: as a rule the job has ended, and an error with its stack would be made for nothing. */
async function concludeCompleted(
  options: ConcludeOptions,
  attempt: Attempt,
  outcome: Outcome,
  durationMs: number,
): Promise<void> {
  const ended = await handlerHasEnded(options, attempt.job);
  const concluding = new Concluding(options, attempt, outcome, durationMs, ended ? COMPLETED : outcome);
  if (ended) concluding.settled('completed by handler');
  else {
    writeIfHeld(options, attempt.job, concluding.transition).then(
      (settled) => concluding.settled(settled),
      (refusal) => concluding.refused(refusal),
    );
  }
}

const COMPLETED: Outcome = { type: 'completed', output: 'null' };

/**
 * An attempt whose outcome is on its way. Thousands of them wait for their batch at once, so what each waits
 * with outlives its generation: promises and async functions around it cost a fifth of a short job. Only what
 * is rare makes some.
 */
class Concluding implements SettlementListener, Concluded {
  readonly verdict: Verdict;
  readonly transition: Transition;

  constructor(
    private readonly options: ConcludeOptions,
    private readonly attempt: Attempt,
    private readonly outcome: Outcome,
    readonly durationMs: number,
    became = outcome,
  ) {
    this.verdict = verdictOn(became, attempt.facts);
    this.transition = transitionOf(attempt, this.verdict);
  }

  settled(settled: EndResult): void {
    noteSettled(this.options, this.attempt, this, settled);
    const conclusion = conclusionOf(settled, this.transition);
    const { handlerHolds } = this.options;
    if (handlerHolds === undefined || !this.attempt.completeRan) this.#conclude(conclusion);
    else void endHandlerHold(handlerHolds, this.attempt).then(() => this.#conclude(conclusion));
  }

  refused(refusal: unknown): void {
    const { options, attempt, outcome, durationMs } = this;
    void concludeAgain(options, attempt, outcome, durationMs, refusal)
      .then(() => options.handlerHolds && endHandlerHold(options.handlerHolds, attempt))
      .then(() => this.#conclude('unknown'));
  }

  #conclude(conclusion: Conclusion): void {
    this.options.onConcluded(this.attempt, conclusion);
  }
}

/** Its handler has ended, and may have ended its job itself: then the slot in its group is still taken. */
async function endHandlerHold(handlerHolds: HandlerHolds, { completeRan, job }: Attempt): Promise<void> {
  if (completeRan) await handlerHolds.end({ id: job.id, group: job.group ?? NO_GROUP });
}

function conclusionOf(settled: EndResult, transition: Transition): Conclusion {
  if (settled === 'completed by handler' || isCancelledInstead(settled)) return 'over';
  if (settled !== 'written') return 'unknown';
  return transition.type === 'finish' && transition.state !== 'discarded' ? 'over' : 'not over';
}

/** The database has refused the outcome, so the attempt fails; if that is refused, both are tried again. */
async function concludeAgain(
  options: ConcludeOptions,
  attempt: Attempt,
  outcome: Outcome,
  durationMs: number,
  refusal: unknown,
): Promise<void> {
  const writeAlone = async (ended: Outcome) => {
    const verdict = verdictOn(ended, attempt.facts);
    const transition = transitionOf(attempt, verdict);
    const settled = await write(options, attempt, transition, true);
    noteSettled(options, attempt, { verdict, transition, durationMs }, settled);
  };
  // Drizzle's error around the driver's repeats the parameters, and the output is among them.
  const writeFailed = (error: unknown) => {
    // Neither a missing right nor a cancelled statement says anything about what was to be written.
    if (isAboutAccess(error) || isCancelled(error)) throw error;
    return writeAlone({ type: 'failed', error: withoutQuery(error) });
  };
  try {
    await writeFailed(refusal);
  } catch (error) {
    await untilAccepted(options, attempt, error, () => writeAlone(outcome).catch(writeFailed));
  }
}

/**
 * Puts a job back that never began, with the attempt that it was claimed with. Never rejects.
 * @param delayMs after which it is due again; without it, it keeps its place
 */
export async function giveBack(options: ConcludeOptions, attempt: Attempt, delayMs?: number): Promise<void> {
  const verdict = verdictOn({ type: 'interrupted' }, attempt.facts);
  const inPlace = transitionFor(verdict, attempt.facts);
  const isDelayed = delayMs !== undefined && inPlace.type === 'reschedule';
  const transition = isDelayed ? { ...inPlace, delayMs } : inPlace;
  const writeOnce = async (alone: boolean) => {
    const settled = await write(options, attempt, transition, alone);
    // It has not begun, so its loss is of no interest.
    if (settled === 'lost') return;
    noteSettled(options, attempt, { verdict, transition, durationMs: 0 }, settled);
  };
  try {
    await writeOnce(false);
  } catch (error) {
    await untilAccepted(options, attempt, error, () => writeOnce(true));
  }
}

/** Tries until the database accepts it (a grant is given, a trigger fixed), alone, to hold up no batch. */
async function untilAccepted(
  { events, leave, onLeftover }: ConcludeOptions,
  attempt: Attempt,
  refusal: unknown,
  tryAgain: () => Promise<void>,
): Promise<void> {
  const { job } = attempt;
  let error = refusal;
  for (const delays = new Doubling(1_000, 60_000); ; ) {
    events.emit('error', { error, during: `settling job ${job.id} of '${job.queue}'` });
    // It stays held until the worker has stopped, and is given back then.
    if (leave.aborted) {
      onLeftover(attempt);
      return;
    }
    await sleep(delays.next(), leave);
    try {
      await tryAgain();
      return;
    } catch (again) {
      error = again;
    }
  }
}

function noteSettled(
  { events, onPutBack, onLeftover }: ConcludeOptions,
  attempt: Attempt,
  { verdict, transition, durationMs }: Concluded,
  settled: EndResult,
): void {
  if (settled === 'abandoned') {
    onLeftover(attempt);
    return;
  }
  if (settled === 'written' && transition.type === 'reschedule') {
    onPutBack(attempt.job, transition.delayMs ?? undefined);
  }
  // Without a limit of time nothing is expected but the notification of what unparks it.
  if (settled === 'written' && transition.type === 'park' && transition.delayMs !== null) {
    onPutBack(attempt.job, transition.delayMs);
  }
  const { onEnd, onJobEnd } = attempt.environment;
  if (onJobEnd && hasEnded(settled, transition)) onJobEnd(attempt.job);
  const end = { verdict, transition, settled, durationMs };
  announce(events, attempt, end);
  // What never began and was put back was no attempt.
  if (onEnd && (attempt.began || verdict.type !== 'interrupted')) onEnd(endedOf(attempt, end));
}

/** Whether the job has left the queue, whatever its end. */
function hasEnded(settled: EndResult, { type }: Transition): boolean {
  if (settled === 'completed by handler' || isCancelledInstead(settled)) return true;
  return settled === 'written' && type === 'finish';
}

function write(
  options: ConcludeOptions,
  attempt: Attempt,
  transition: Transition,
  alone: boolean,
): Promise<EndResult> {
  if (attempt.completeRan) return writeUnlessCompleted(options, attempt.job, transition);
  const { id, fence } = attempt.job;
  const settlement = { id, fence, transition };
  return alone ? options.settler.settleAlone(settlement) : options.settler.settle(settlement);
}

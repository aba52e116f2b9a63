import { withoutQuery } from '../../job/describe-error.ts';
import { NO_GROUP } from '../../job/group.ts';
import type { Outcome } from '../../job/outcome.ts';
import { type Transition, transitionFor, type Verdict, verdictOn } from '../../job/transition.ts';
import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import { allowManyListeners } from '../../runtime.ts';
import type { Runner } from '../../sql/executor.ts';
import type { Holder } from '../../sql/fence.ts';
import { Doubling } from '../../time/doubling.ts';
import { sleep } from '../../time/sleep.ts';
import { Bag } from '../base/bag.ts';
import { isAboutAccess, isCancelled } from '../base/refusal.ts';
import type { Until } from '../base/until.ts';
import type { Attempt, AttemptEnvironment } from '../run/attempt.ts';
import {
  type AfterCompleteOptions,
  handlerHasEnded,
  writeIfHeld,
  writeUnlessCompleted,
} from './after-complete.ts';
import { announce, type EndResult, endedOf } from './announce.ts';
import { Fates } from './fates.ts';
import type { HandlerHolds } from './handler-holds.ts';
import { Leftovers } from './leftovers.ts';
import { isCancelledInstead, type SettlementListener } from './settlement.ts';

export interface EndingsOptions extends Omit<AfterCompleteOptions, 'fates' | 'leave'> {
  readonly environment: Pick<AttemptEnvironment, 'db' | 'tables'>;
  /** Runs what is asked about jobs that a handler may have ended. */
  readonly questionRunner: Runner;
  readonly holder: Holder;
  /** A worker that ends once its queues are empty does not try again what the database refuses. */
  readonly until: Until;
  /** Called when a job was put back, due after a delay or where it was (`undefined`). */
  readonly onPutBack: (job: ClaimedJob, delayMs: number | undefined) => void;
}

/**
 * What became of the job of an attempt that was concluded: it was completed or cancelled; it was put back or
 * discarded; or it was lost, or nothing is known.
 */
export type Conclusion = 'over' | 'not over' | 'unknown';

/** What is told of the ends. */
export interface EndingsListener {
  /** Nothing more is written about an attempt that has ended. */
  onConcluded(attempt: Attempt, conclusion: Conclusion): void;
  onGivenBack(): void;
}

interface Concluded {
  readonly verdict: Verdict;
  readonly transition: Transition;
  readonly durationMs: number;
}

const COMPLETED: Outcome = { type: 'completed', output: 'null' };

/** The attempts of one queue whose outcome is being written, or that are being given back. */
export class Endings {
  readonly #options: EndingsOptions & AfterCompleteOptions;
  readonly #leaving = new AbortController();
  readonly #leftovers = new Leftovers();
  readonly #unsettled = new Bag<'placeUnsettled', Attempt>('placeUnsettled');
  readonly #told: EndingsListener;

  constructor(options: EndingsOptions, told: EndingsListener) {
    const { environment, questionRunner, holder, until } = options;
    const { tables } = environment;
    const fates = new Fates({ db: questionRunner, tables, queue: holder.queue });
    this.#options = { ...options, fates, leave: this.#leaving.signal };
    this.#told = told;
    // Each attempt whose outcome is refused listens to it while it waits.
    allowManyListeners(this.#leaving.signal);
    if (until === 'empty') this.#leaving.abort();
  }

  get size(): number {
    return this.#unsettled.size;
  }

  get attempts(): Iterable<Attempt> {
    return this.#unsettled;
  }

  /** Writes how an attempt has ended, then announces it; throws nothing. */
  conclude(attempt: Attempt, outcome: Outcome, durationMs: number): void {
    this.#unsettled.add(attempt);
    if (attempt.completeRan) {
      void this.#concludeCompleted(attempt, outcome, durationMs);
      return;
    }
    const ending = new Ending(this, attempt, outcome, durationMs);
    this.#options.settler.settleFor(attempt.job, ending.transition, ending);
  }

  /** Asks first: as a rule the job has ended, and an error with its stack would be made for nothing. */
  async #concludeCompleted(attempt: Attempt, outcome: Outcome, durationMs: number): Promise<void> {
    const ended = await handlerHasEnded(this.#options, attempt.job);
    const ending = new Ending(this, attempt, outcome, durationMs, ended ? COMPLETED : outcome);
    if (ended) ending.settled('completed by handler');
    else {
      writeIfHeld(this.#options, attempt.job, ending.transition).then(
        (settled) => ending.settled(settled),
        (refusal) => ending.refused(refusal),
      );
    }
  }

  /** What became of an attempt whose outcome was on its way. */
  noteSettled(ending: Ending, settled: EndResult): void {
    const { attempt } = ending;
    this.#announce(attempt, ending, settled);
    const conclusion = conclusionOf(settled, ending.transition);
    const { handlerHolds } = this.#options;
    if (handlerHolds === undefined || !attempt.completeRan) this.#over(attempt, conclusion);
    else void endHandlerHold(handlerHolds, attempt).then(() => this.#over(attempt, conclusion));
  }

  noteRefused({ attempt, outcome, durationMs }: Ending, refusal: unknown): void {
    const { handlerHolds } = this.#options;
    void this.#concludeAgain(attempt, outcome, durationMs, refusal)
      .then(() => handlerHolds && endHandlerHold(handlerHolds, attempt))
      .then(() => this.#over(attempt, 'unknown'));
  }

  #over(attempt: Attempt, conclusion: Conclusion): void {
    this.#unsettled.delete(attempt);
    this.#told.onConcluded(attempt, conclusion);
  }

  /** The database has refused the outcome, so the attempt fails; if that is refused, both are tried again. */
  async #concludeAgain(
    attempt: Attempt,
    outcome: Outcome,
    durationMs: number,
    refusal: unknown,
  ): Promise<void> {
    const writeAlone = async (ended: Outcome) => {
      const verdict = verdictOn(ended, attempt.facts);
      const transition = transitionFor(verdict, attempt.facts);
      const settled = await this.#write(attempt, transition, true);
      this.#announce(attempt, { verdict, transition, durationMs }, settled);
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
      await this.#untilAccepted(attempt, error, () => writeAlone(outcome).catch(writeFailed));
    }
  }

  /**
   * Puts a job back that never began, with the attempt that it was claimed with.
   * @param delayMs after which it is due again; without it, it keeps its place
   */
  giveBack(attempt: Attempt, delayMs?: number): void {
    this.#unsettled.add(attempt);
    void this.#writeGivenBack(attempt, delayMs).then(() => {
      this.#unsettled.delete(attempt);
      this.#told.onGivenBack();
    });
  }

  /** Never rejects. */
  async #writeGivenBack(attempt: Attempt, delayMs: number | undefined): Promise<void> {
    const verdict = verdictOn({ type: 'interrupted' }, attempt.facts);
    const inPlace = transitionFor(verdict, attempt.facts);
    const isDelayed = delayMs !== undefined && inPlace.type === 'reschedule';
    const transition = isDelayed ? { ...inPlace, delayMs } : inPlace;
    const writeOnce = async (alone: boolean) => {
      const settled = await this.#write(attempt, transition, alone);
      // It has not begun, so its loss is of no interest.
      if (settled === 'lost') return;
      this.#announce(attempt, { verdict, transition, durationMs: 0 }, settled);
    };
    try {
      await writeOnce(false);
    } catch (error) {
      await this.#untilAccepted(attempt, error, () => writeOnce(true));
    }
  }

  /** Tries until the database accepts it (a grant is given, a trigger fixed), alone, to hold up no batch. */
  async #untilAccepted(attempt: Attempt, refusal: unknown, tryAgain: () => Promise<void>): Promise<void> {
    const { events, leave } = this.#options;
    const { job } = attempt;
    let error = refusal;
    for (const delays = new Doubling(1_000, 60_000); ; ) {
      events.emit('error', { error, during: `settling job ${job.id} of '${job.queue}'` });
      // It stays held until the worker has stopped, and is given back then.
      if (leave.aborted) {
        this.#leftovers.add(attempt);
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

  #write(attempt: Attempt, transition: Transition, alone: boolean): Promise<EndResult> {
    if (attempt.completeRan) return writeUnlessCompleted(this.#options, attempt.job, transition);
    const { settler } = this.#options;
    const { id, fence } = attempt.job;
    const settlement = { id, fence, transition };
    return alone ? settler.settleAlone(settlement) : settler.settle(settlement);
  }

  #announce(attempt: Attempt, { verdict, transition, durationMs }: Concluded, settled: EndResult): void {
    const { events, onPutBack } = this.#options;
    if (settled === 'abandoned') {
      // Nothing could be written of it: its job stays held.
      this.#leftovers.add(attempt);
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

  /** What the database refuses is tried no more. */
  stop(): void {
    this.#leaving.abort();
  }

  /** Puts back what is still held at the end: what could not be written, and those that have not `begun`. */
  async giveBackLeftovers(
    unbegun: readonly Attempt[],
    ...[options, tooLate]: Parameters<Leftovers['giveBack']>
  ): Promise<void> {
    for (const attempt of unbegun) this.#leftovers.add(attempt);
    await this.#leftovers.giveBack(options, tooLate);
  }
}

/**
 * An attempt whose outcome is on its way. Thousands of them wait for their batch at once, so what each waits
 * with outlives its generation: promises and async functions around it cost a fifth of a short job. Only what
 * is rare makes some.
 */
class Ending implements SettlementListener, Concluded {
  readonly verdict: Verdict;
  readonly transition: Transition;

  constructor(
    private readonly endings: Endings,
    readonly attempt: Attempt,
    readonly outcome: Outcome,
    readonly durationMs: number,
    became = outcome,
  ) {
    const { facts } = attempt;
    this.verdict = verdictOn(became, facts);
    this.transition = transitionFor(this.verdict, facts);
  }

  settled(settled: EndResult): void {
    this.endings.noteSettled(this, settled);
  }

  refused(refusal: unknown): void {
    this.endings.noteRefused(this, refusal);
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

/** Whether the job has left the queue, whatever its end. */
function hasEnded(settled: EndResult, { type }: Transition): boolean {
  if (settled === 'completed by handler' || isCancelledInstead(settled)) return true;
  return settled === 'written' && type === 'finish';
}

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
import { News } from '../base/news.ts';
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
import { isCancelledInstead, PendingSettlement } from './settlement.ts';

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

/** An attempt that has ended, and of which nothing more is written. */
export interface ConcludedAttempt {
  readonly attempt: Attempt;
  readonly conclusion: Conclusion;
}

/** What is to become of a job. */
interface Decided {
  readonly verdict: Verdict;
  readonly transition: Transition;
}

const COMPLETED: Outcome = { type: 'completed', output: 'null' };

/**
 * The attempts of one queue whose outcome is being written, or that are being given back. All that becomes of
 * them is news, which {@link Endings.concluded} takes in and returns.
 */
export class Endings {
  readonly #options: EndingsOptions & AfterCompleteOptions;
  readonly #leaving = new AbortController();
  readonly #leftovers = new Leftovers();
  readonly #unsettled = new Bag<'placeUnsettled', Attempt>('placeUnsettled');
  /** The endings that have their answer, or of which nothing more is written. */
  readonly #news = new News<Ending>();

  constructor(options: EndingsOptions) {
    const { environment, questionRunner, holder, until } = options;
    const { tables } = environment;
    const fates = new Fates({ db: questionRunner, tables, queue: holder.queue });
    this.#options = { ...options, fates, leave: this.#leaving.signal };
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

  /** Writes how an attempt has ended; throws nothing. */
  conclude(attempt: Attempt, outcome: Outcome, durationMs: number): void {
    this.#unsettled.add(attempt);
    if (attempt.completeRan) void this.#concludeCompleted(attempt, outcome, durationMs);
    else this.#options.settler.add(this.#endingOf(attempt, outcome, durationMs));
  }

  /**
   * Puts a job back that never began, with the attempt that it was claimed with.
   * @param delayMs after which it is due again; without it, it keeps its place
   */
  giveBack(attempt: Attempt, delayMs?: number): void {
    this.#unsettled.add(attempt);
    const outcome = { type: 'interrupted' } as const;
    const { facts } = attempt;
    const verdict = verdictOn(outcome, facts);
    const inPlace = transitionFor(verdict, facts);
    const isDelayed = delayMs !== undefined && inPlace.type === 'reschedule';
    const transition = isDelayed ? { ...inPlace, delayMs } : inPlace;
    this.#options.settler.add(new Ending(this.#news, attempt, outcome, 0, verdict, transition, true));
  }

  /**
   * Waits until something has become of some of them, and announces it. Returns those that have ended and of
   * which nothing more is written, each once. To be called again as long as there are any; never rejects.
   */
  async concluded(): Promise<readonly ConcludedAttempt[]> {
    const concluded: ConcludedAttempt[] = [];
    for (const ending of await this.#news.next()) {
      if (!ending.isOver) this.#noteAnswer(ending);
      // It is news once more when it is over.
      if (!ending.isOver) continue;
      this.#unsettled.delete(ending.attempt);
      if (!ending.givesBack) concluded.push(ending);
    }
    return concluded;
  }

  #noteAnswer(ending: Ending): void {
    const { result, refusal } = ending;
    if (result === undefined) void this.#writeAgain(ending, refusal);
    else this.#noteSettled(ending, result);
  }

  #noteSettled(ending: Ending, settled: EndResult): void {
    const { attempt, transition } = ending;
    this.#announce(ending, ending, settled);
    ending.conclusion = conclusionOf(settled, transition);
    const { handlerHolds } = this.#options;
    if (handlerHolds === undefined || !attempt.completeRan) ending.isOver = true;
    else void endHandlerHold(handlerHolds, attempt).then(() => this.#noteOver(ending));
  }

  /** Nothing more is written about it. */
  #noteOver(ending: Ending): void {
    ending.isOver = true;
    this.#news.add(ending);
  }

  #endingOf(attempt: Attempt, outcome: Outcome, durationMs: number, became = outcome): Ending {
    const { facts } = attempt;
    const verdict = verdictOn(became, facts);
    const transition = transitionFor(verdict, facts);
    return new Ending(this.#news, attempt, outcome, durationMs, verdict, transition);
  }

  /** Asks first: as a rule the job has ended, and an error with its stack would be made for nothing. */
  async #concludeCompleted(attempt: Attempt, outcome: Outcome, durationMs: number): Promise<void> {
    const ended = await handlerHasEnded(this.#options, attempt.job);
    const ending = this.#endingOf(attempt, outcome, durationMs, ended ? COMPLETED : outcome);
    let settled: EndResult = 'completed by handler';
    try {
      if (!ended) settled = await writeIfHeld(this.#options, attempt.job, ending.transition);
    } catch (refusal) {
      await this.#writeAgain(ending, refusal);
      return;
    }
    this.#noteSettled(ending, settled);
    if (ending.isOver) this.#news.add(ending);
  }

  /** The database has refused it. Never rejects. */
  async #writeAgain(ending: Ending, refusal: unknown): Promise<void> {
    const { attempt, givesBack } = ending;
    if (givesBack) await this.#untilAccepted(attempt, refusal, () => this.#writeAlone(ending, ending));
    else await this.#failInstead(ending, refusal);
    const { handlerHolds } = this.#options;
    if (handlerHolds !== undefined) await endHandlerHold(handlerHolds, attempt);
    this.#noteOver(ending);
  }

  /** The attempt fails, as its outcome is refused; if that is refused, too, both are tried again. */
  async #failInstead(ending: Ending, refusal: unknown): Promise<void> {
    const { attempt } = ending;
    const writeAlone = (ended: Outcome) => {
      const { facts } = attempt;
      const verdict = verdictOn(ended, facts);
      return this.#writeAlone(ending, { verdict, transition: transitionFor(verdict, facts) });
    };
    // Drizzle's error around the driver's repeats the parameters, and the output is among them.
    const writeFailed = async (error: unknown) => {
      // Neither a missing right nor a cancelled statement says anything about what was to be written.
      if (isAboutAccess(error) || isCancelled(error)) throw error;
      await writeAlone({ type: 'failed', error: withoutQuery(error) });
    };
    try {
      await writeFailed(refusal);
    } catch (error) {
      await this.#untilAccepted(attempt, error, () => writeAlone(ending.outcome).catch(writeFailed));
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

  async #writeAlone(ending: Ending, decided: Decided): Promise<void> {
    const { id, fence, attempt } = ending;
    const { transition } = decided;
    const settled = attempt.completeRan
      ? await writeUnlessCompleted(this.#options, attempt.job, transition)
      : await this.#options.settler.settleAlone({ id, fence, transition });
    this.#announce(ending, decided, settled);
  }

  #announce(
    { attempt, durationMs, givesBack }: Ending,
    { verdict, transition }: Decided,
    settled: EndResult,
  ): void {
    const { events, onPutBack } = this.#options;
    // It has not begun, so its loss is of no interest.
    if (givesBack && settled === 'lost') return;
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
class Ending extends PendingSettlement implements Decided {
  conclusion: Conclusion = 'unknown';
  /** Whether nothing more is written about it. */
  isOver = false;

  /**
   * @param outcome the handler's
   * @param givesBack whether its job never began, and is put back
   */
  constructor(
    private readonly news: News<Ending>,
    readonly attempt: Attempt,
    readonly outcome: Outcome,
    readonly durationMs: number,
    readonly verdict: Verdict,
    transition: Transition,
    readonly givesBack = false,
  ) {
    super(attempt.job, transition);
  }

  protected override noteAnswered(): void {
    this.news.add(this);
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

import type { Finish, Park, Reschedule, Transition } from '../../job/transition.ts';
import type { HeldJob } from '../../sql/fence.ts';
import type { Bag } from '../base/bag.ts';

const MAX_BATCH = 2_000;
const MAX_BATCH_CHARACTERS = 8 * 1024 * 1024;

/** A transition that is to be written for a held job. */
export interface Settlement<TTransition extends Transition = Transition> {
  readonly id: number;
  readonly fence: number;
  readonly transition: TTransition;
}

/**
 * What became of a settlement: it took effect; the job was no longer held under this fence; the job was put
 * back but has ended as cancelled, since its end was requested; or the worker gave up before it knew.
 */
export type SettleResult = 'written' | 'lost' | CancelledInstead | 'abandoned';

/** A job that was put back has ended as cancelled: for what reason. */
export interface CancelledInstead {
  readonly cancelled: string;
}

/** Whether the job has ended as cancelled, although it was to be put back. */
export function isCancelledInstead(settled: SettleResult | string): settled is CancelledInstead {
  return typeof settled === 'object';
}

/** Waits for the result of a settlement; exactly one of the two is called, once. */
export interface SettlementListener {
  settled(result: SettleResult): void;
  /** @param refusal what the database says about this row */
  refused(refusal: unknown): void;
}

/** A settlement on its way. Its answer is given once; what comes later changes nothing. */
export abstract class PendingSettlement<TTransition extends Transition = Transition>
  implements Settlement<TTransition>
{
  readonly id: number;
  readonly fence: number;
  /** Whether the last try got as far as sending it. */
  sent = false;
  /** Whether a try may have taken effect whose answer was lost. */
  uncertain = false;
  /** Those without an answer, and its place among them. */
  open: OpenSettlements | undefined;
  place = -1;
  #answered = false;
  #result: SettleResult | undefined;
  #refusal: unknown;

  constructor(
    { id, fence }: HeldJob,
    readonly transition: TTransition,
  ) {
    this.id = id;
    this.fence = fence;
  }

  get answered(): boolean {
    return this.#answered;
  }

  /** `undefined`: it has no answer, or was refused. */
  get result(): SettleResult | undefined {
    return this.#result;
  }

  /** What the database says about this row. */
  get refusal(): unknown {
    return this.#refusal;
  }

  answer(result: SettleResult): void {
    if (this.#answered) return;
    this.#result = result;
    this.#close();
  }

  /** @param refusal what the database says about this row */
  refuse(refusal: unknown): void {
    if (this.#answered) return;
    this.#refusal = refusal;
    this.#close();
  }

  #close(): void {
    this.#answered = true;
    this.open?.delete(this);
    this.noteAnswered();
  }

  /**
   * It has its answer. What follows from that waits a moment: it may stop the worker, and must not do so
   * while a batch is answered by half.
   */
  protected abstract noteAnswered(): void;
}

export type OpenSettlements = Bag<'place', PendingSettlement>;

/** One whose listener is told the answer. */
export class ToldSettlement extends PendingSettlement {
  constructor(
    job: HeldJob,
    transition: Transition,
    private readonly listener: SettlementListener,
  ) {
    super(job, transition);
  }

  protected override noteAnswered(): void {
    queueMicrotask(() => {
      if (this.result === undefined) this.listener.refused(this.refusal);
      else this.listener.settled(this.result);
    });
  }
}

export function isFinish(settlement: PendingSettlement): settlement is PendingSettlement<Finish> {
  return settlement.transition.type === 'finish';
}

export function isReschedule(settlement: PendingSettlement): settlement is PendingSettlement<Reschedule> {
  return settlement.transition.type === 'reschedule';
}

export function isPark(settlement: PendingSettlement): settlement is PendingSettlement<Park> {
  return settlement.transition.type === 'park';
}

/**
 * The next rows of one statement, each job once: its answer is told by its id, and a lost attempt may end
 * together with a newer one. And no more output than one parameter carries well.
 */
export function nextBatch(waiting: readonly PendingSettlement[]): {
  batch: PendingSettlement[];
  rest: PendingSettlement[];
} {
  const batch = new Map<number, PendingSettlement>();
  const again: PendingSettlement[] = [];
  let at = 0;
  for (let characters = 0; at < waiting.length && batch.size < MAX_BATCH; at++) {
    const next = waiting[at];
    if (next === undefined) break;
    characters += outputLength(next.transition);
    if (characters > MAX_BATCH_CHARACTERS && batch.size > 0) break;
    if (batch.has(next.id)) again.push(next);
    else batch.set(next.id, next);
  }
  return { batch: [...batch.values()], rest: [...again, ...waiting.slice(at)] };
}

function outputLength(transition: Transition): number {
  return transition.type === 'finish' ? (transition.output?.length ?? 0) : 0;
}

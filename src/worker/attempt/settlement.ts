import type { Finish, Park, Reschedule, Transition } from '../../job/transition.ts';

/** A transition that is to be written for a held job. */
export interface Settlement<TTransition extends Transition = Transition> {
  readonly id: number;
  readonly fence: number;
  readonly transition: TTransition;
}

/**
 * What became of a settlement: it took effect; the job was no longer held under this fence; the job was put
 * back but has ended as cancelled, since somebody had asked for that; or the worker gave up before it knew.
 */
export type SettleResult = 'written' | 'lost' | { readonly cancelled: string } | 'abandoned';

/** A settlement on its way. Its answer is given once; what comes later changes nothing. */
export class PendingSettlement<TTransition extends Transition = Transition>
  implements Settlement<TTransition>
{
  readonly result: Promise<SettleResult>;
  /** Whether the last try got as far as sending it. */
  sent = false;
  /** Whether a try may have taken effect whose answer was lost. */
  uncertain = false;
  #answered = false;
  #resolve: (result: SettleResult) => void = () => undefined;
  #reject: (refusal: unknown) => void = () => undefined;

  constructor(
    readonly id: number,
    readonly fence: number,
    readonly transition: TTransition,
    /** All that have no answer yet; this one leaves them with its answer. */
    private readonly open: Set<PendingSettlement>,
  ) {
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get answered(): boolean {
    return this.#answered;
  }

  answer(result: SettleResult): void {
    if (this.#answer()) this.#resolve(result);
  }

  /** @param refusal what the database says about this row */
  refuse(refusal: unknown): void {
    if (this.#answer()) this.#reject(refusal);
  }

  #answer(): boolean {
    if (this.#answered) return false;
    this.#answered = true;
    this.open.delete(this);
    return true;
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

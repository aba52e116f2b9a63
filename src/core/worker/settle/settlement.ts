import type { Finish, Park, Reschedule, Transition } from '../../job/transition.ts';
import { Bag } from '../base/bag.ts';

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
export class PendingSettlement<TTransition extends Transition = Transition>
  implements Settlement<TTransition>
{
  /** Whether the last try got as far as sending it. */
  sent = false;
  /** Whether a try may have taken effect whose answer was lost. */
  uncertain = false;
  /** Where it is among those without an answer. */
  place = -1;
  #answered = false;
  #result: SettleResult | undefined;
  #refusal: unknown;

  constructor(
    readonly id: number,
    readonly fence: number,
    readonly transition: TTransition,
    private readonly listener: SettlementListener,
    private readonly open: OpenSettlements,
  ) {}

  get answered(): boolean {
    return this.#answered;
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
    this.open.close(this);
  }

  /** Tells the listener the answer. */
  tell(): void {
    if (this.#result === undefined) this.listener.refused(this.#refusal);
    else this.listener.settled(this.#result);
  }
}

/**
 * The settlements of one settler that have no answer yet. Listeners are told a moment after the answer, as by
 * a promise: one of them may stop the worker, and must not do so while a batch is answered by half.
 */
export class OpenSettlements {
  readonly #open = new Bag<'place', PendingSettlement>('place');
  #untold: PendingSettlement[] = [];

  get all(): readonly PendingSettlement[] {
    return [...this.#open];
  }

  add(settlement: PendingSettlement): void {
    this.#open.add(settlement);
  }

  /** It has its answer. */
  close(settlement: PendingSettlement): void {
    this.#open.delete(settlement);
    if (this.#untold.push(settlement) === 1) queueMicrotask(() => this.#tell());
  }

  #tell(): void {
    const untold = this.#untold;
    this.#untold = [];
    for (const settlement of untold) settlement.tell();
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

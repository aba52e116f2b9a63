import type { Lease } from './lease.ts';

/** What the worker holds of the queue, as far as limits are about it. */
export interface LimitedAttempts {
  /** Claimed, and not begun. */
  readonly waiting: readonly { readonly job: { readonly kind: string } }[];
  /** Begins what may begin now. */
  beginWaiting(): void;
}

/** What a claim has brought. */
export interface LimitedClaim {
  readonly kinds: readonly string[];
  readonly jobs: readonly { readonly kind: string }[];
  /** Whether it has seen the last due job of these kinds. */
  readonly sawEnd: boolean;
}

export interface QueueLimiterOptions {
  /** Of the queue as a whole. */
  readonly lease: Lease;
  /** Of kinds with a limit of their own. */
  readonly kinds: ReadonlyMap<string, Lease>;
  /** The slots that the process has for the queue. */
  readonly concurrency: number;
  /** Called when more or less may be used than before. */
  readonly onUse: (limiter: QueueLimiter) => void;
}

/** Stands for all kinds without a limit of their own. */
const OTHERS = undefined;

/** Keeps the handlers of one queue in one process within what the worker has of the queue's limits. */
export class QueueLimiter {
  readonly #options: QueueLimiterOptions;
  /** Of which of its kinds more jobs are known to be due than were claimed. */
  readonly #backlog = new Set<string | typeof OTHERS>();
  #attempts: LimitedAttempts = { waiting: [], beginWaiting: () => undefined };
  #onRoom: () => void = () => undefined;

  constructor(options: QueueLimiterOptions) {
    this.#options = options;
  }

  /** @param onRoom called when more may be worth a claim */
  serve(attempts: LimitedAttempts, onRoom: () => void): void {
    this.#attempts = attempts;
    this.#onRoom = onRoom;
  }

  get leases(): Lease[] {
    return [this.#options.lease, ...this.#options.kinds.values()];
  }

  /** The kinds with a limit of their own. */
  get kinds(): ReadonlySet<string> {
    return new Set(this.#options.kinds.keys());
  }

  mayBegin(kind: string): boolean {
    return this.#options.lease.mayBegin && (this.#options.kinds.get(kind)?.mayBegin ?? true);
  }

  begin(kind: string): void {
    this.#options.lease.begin();
    this.#options.kinds.get(kind)?.begin();
  }

  end(kind: string): void {
    const nowMs = performance.now();
    const gives = this.#options.lease.end(nowMs);
    if (this.#options.kinds.get(kind)?.end(nowMs) || gives) this.#options.onUse(this);
  }

  /** For how many handlers of the queue there may soon be room. */
  get slots(): number {
    const { lease, concurrency } = this.#options;
    return Math.min(concurrency, lease.room);
  }

  /** How many wait for a slot of their kind, and so are in nobody's way. */
  get heldUp(): number {
    const { kinds } = this.#options;
    if (kinds.size === 0) return 0;
    return this.#attempts.waiting.filter(({ job }) => kinds.get(job.kind)?.mayBegin === false).length;
  }

  /** For how many of one kind with a limit of its own, and how many of it are here already. */
  ofKind(kind: string): { readonly slots: number; readonly held: number } {
    const lease = this.#options.kinds.get(kind);
    const slots = lease?.room ?? Number.POSITIVE_INFINITY;
    return { slots: Math.min(this.slots, slots), held: this.#held(kind) };
  }

  /** Learns from a claim which kinds have more jobs than were claimed. */
  noteClaim({ kinds, jobs, sawEnd }: LimitedClaim): void {
    const told = sawEnd ? kinds : jobs.map(({ kind }) => kind);
    for (const kind of new Set(told)) {
      const lane = this.#options.kinds.has(kind) ? kind : OTHERS;
      if (sawEnd) this.#backlog.delete(lane);
      else this.#backlog.add(lane);
    }
    if (told.length > 0) this.#options.onUse(this);
  }

  /** What the worker has of a limit may have changed. */
  noteChange(): void {
    this.#attempts.beginWaiting();
    this.#onRoom();
  }

  /** How many slots of a lease it could use. */
  appetite(lease: Lease): number {
    const { lease: whole, kinds, concurrency } = this.#options;
    if (lease !== whole) {
      const kind = lease.question.kind;
      const most = whole.limited && whole.refused ? whole.room : concurrency;
      return Math.max(Math.min(this.#wanted(kind, lease), most), lease.running);
    }
    const held = this.#attempts.waiting.filter(({ job }) => !kinds.has(job.kind)).length;
    let inKinds = 0;
    let wanted = 0;
    for (const [kind, ofKind] of kinds) {
      const most = ofKind.limited && ofKind.refused ? ofKind.room : concurrency;
      inKinds += ofKind.running;
      wanted += Math.max(Math.min(this.#wanted(kind, whole), most), ofKind.running);
    }
    const others = whole.refused && this.#backlog.has(OTHERS) ? concurrency : 0;
    return Math.min(concurrency, wanted + Math.max(others, held + whole.running - inKinds));
  }

  /** Where it was refused some it asks for as many as it could use; else for what it has jobs for. */
  #wanted(kind: string, { refused }: Lease): number {
    const { concurrency } = this.#options;
    return refused && this.#backlog.has(kind) ? concurrency : Math.min(concurrency, this.#held(kind));
  }

  #held(kind: string): number {
    const waiting = this.#attempts.waiting.filter(({ job }) => job.kind === kind).length;
    return waiting + (this.#options.kinds.get(kind)?.running ?? 0);
  }
}

import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import type { Bag } from '../base/bag.ts';
import type { Attempt } from '../run/attempt.ts';
import type { Handler } from '../run/handler.ts';
import type { Endings } from '../settle/endings.ts';
import type { BeginningsOptions } from './beginnings.ts';
import type { Gate } from './gate.ts';
import type { Prefetch } from './prefetch.ts';

/** The jobs of batch handlers that a worker holds of one queue: they gather, and then run in one slot. */
export interface Gathered {
  /** Whether the worker has a batch handler. */
  readonly serves: boolean;
  /** Whether jobs of this kind wait for others. */
  gathers(kind: string): boolean;
  /** How many attempts run in a slot that they share with another. */
  readonly sharing: number;
  /** The attempts that have no slot yet. */
  readonly waiting: readonly Attempt[];
  readonly gathered: number;
  /** Since when a batch has waited for a slot; `Infinity` if none does. */
  readonly waitsSinceMs: number;
  /** Attempts without a slot whose batch has waited for one since then, or longer. */
  late(sinceMs: number): readonly Attempt[];
  /** The attempts that have a slot and whose beginning is being recorded. */
  readonly beginning: Iterable<Attempt>;
  /** How many jobs one slot takes, on average. */
  readonly jobsPerSlot: number;
  /** Whether a batch waits for a slot. */
  readonly isReady: boolean;
  /** The jobs of the batch that waits and stands first; none if none waits. */
  readonly next: readonly ClaimedJob[];
  /** How many jobs to claim, with `free` slots and this many jobs ahead. */
  demand(free: number, ahead: number): number;
  /** Takes in those of the claimed attempts that wait for others of their kind; returns the rest. */
  add(attempts: readonly Attempt[]): readonly Attempt[];
  /** Whether a batch may begin whose first job is ahead of this one in the queue. */
  isBefore(attempt: Attempt | undefined): boolean;
  /** Begins the batch that waits and stands first, if it still may. */
  begin(): void;
  /** Forgets those of the attempts that have no slot yet. */
  drop(attempts: ReadonlySet<Attempt>): void;
  /** What is here waits for no others. */
  flush(): void;
  /** Ends the sleep after a failed statement. */
  stop(): void;
}

export interface GatheredOptions extends BeginningsOptions {
  readonly handlers: ReadonlyMap<string, Handler>;
  /** Whether the worker neither stops nor has paused the queue. */
  readonly mayBegin: () => boolean;
  /** `undefined` where the queue has no limits. */
  readonly gate?: Gate | undefined;
  /** Where the attempts of a batch are that has a slot, beside those of single jobs. */
  readonly running: Bag<'placeRunning', Attempt>;
  readonly endings: Pick<Endings, 'conclude' | 'giveBack'>;
  readonly prefetch: Pick<Prefetch, 'note'>;
  /** Called when a batch waits for a slot, or has left it: what can begin now begins. */
  readonly proceed: () => void;
}

/** In a worker without batch handlers each job has a slot of its own. */
const NONE_GATHERED: Gathered = {
  serves: false,
  gathers: () => false,
  sharing: 0,
  waiting: [],
  gathered: 0,
  waitsSinceMs: Number.POSITIVE_INFINITY,
  late: () => [],
  beginning: [],
  jobsPerSlot: 1,
  isReady: false,
  next: [],
  demand: (free, ahead) => Math.max(0, free) + ahead,
  add: (attempts) => attempts,
  isBefore: () => false,
  begin() {},
  drop() {},
  flush() {},
  stop() {},
};

type MakeGathered = (options: GatheredOptions) => Gathered;

/** A batch handler brings what its jobs gather with, so that the core does not know it. */
export const MAKE_GATHERED: unique symbol = Symbol.for('drizzle-queue: make gathered');

/** The handlers of one worker, and what the first batch handler among them has brought. */
const known = new WeakMap<ReadonlyMap<string, Handler>, MakeGathered>();

export function gatheredOf(options: GatheredOptions): Gathered {
  const { handlers } = options;
  // Looked up once for all queues of a worker: it may have thousands, and as many kinds.
  const make =
    known.get(handlers) ?? [...handlers.values()].find(makesGathered)?.[MAKE_GATHERED] ?? noneGathered;
  known.set(handlers, make);
  return make(options);
}

function makesGathered(handler: Handler): handler is Handler & { readonly [MAKE_GATHERED]: MakeGathered } {
  return MAKE_GATHERED in handler;
}

function noneGathered(): Gathered {
  return NONE_GATHERED;
}

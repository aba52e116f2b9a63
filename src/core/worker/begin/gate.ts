import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';

export type JobAtGate = Pick<ClaimedJob, 'kind' | 'cost'>;

/** What the worker holds of the queue, as far as a gate is about it. */
export interface AttemptsAtGate {
  /** Claimed, and not begun, each in a slot of its own. */
  readonly waiting: readonly { readonly job: JobAtGate }[];
  /** Those of batch handlers: they gather, or wait for a slot that they will share. */
  readonly gathering: readonly JobAtGate[];
  /** The jobs of the next batch that has gathered; none if none has. */
  readonly nextBatch: readonly JobAtGate[];
  /** How many slots of the process are free. */
  readonly free: number;
  /** Whether the worker neither stops nor has paused the queue. */
  readonly mayBegin: boolean;
  beginWaiting(): void;
}

export interface ClaimAtGate {
  readonly kinds: readonly string[];
  readonly jobs: readonly ClaimedJob[];
  /** Whether it has seen the last due job of these kinds. */
  readonly sawEnd: boolean;
}

/**
 * Decides when jobs of one queue that this process holds may begin, and for how many more a claim is worth
 * its statement. A queue without one begins a job as soon as the process has a free slot.
 */
export interface Gate {
  /** The kinds that are claimed separately, since the gate may stop them alone. */
  readonly kinds: ReadonlySet<string>;
  /** Whether it asks for the costs of jobs. */
  readonly countsCosts: boolean;
  /** For how many handlers of the queue there may soon be room. */
  readonly slots: number;
  /** The kinds whose waiting jobs do not hold up others: they wait for something of their own kind. */
  readonly heldUp: ReadonlySet<string>;
  /** How many more jobs of the queue to claim at most. */
  readonly mostMore: number;
  /** The same for one of its {@link Gate.kinds}, and how many jobs of it are here already. */
  ofKind(kind: string): { readonly slots: number; readonly held: number; readonly mostMore: number };

  /** @param onRoom called when more may be worth a claim */
  serve(attempts: AttemptsAtGate, onRoom: () => void): void;
  /** Called as a claim is sent; learns from it when that has ended. */
  noteClaiming(claim: Promise<unknown>): void;
  /** Learns from a claim, whose jobs wait or have begun, which kinds have more jobs than were claimed. */
  noteClaim(claim: ClaimAtGate): void;

  /** The first waiting job that may begin. */
  next<T extends { readonly job: JobAtGate }>(waiting: readonly T[]): T | undefined;
  /** Takes what a job needs as it begins; false where it may not. What `next` saw may be void by now. */
  begin(job: JobAtGate): boolean;
  /** How many of the first of these jobs of a batch may begin together now. */
  mostTogether(jobs: readonly JobAtGate[]): number;
  /** Called as a batch begins; returns until when its handler may be called. */
  beginBatch(jobs: readonly JobAtGate[]): number;
  /** Called when the handler of a job of this kind has ended. */
  end(kind: string): void;
}

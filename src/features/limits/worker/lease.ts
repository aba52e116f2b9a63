import { Doubling } from '../../../core/time/doubling.ts';
import { jitter } from '../../../core/time/jitter.ts';
import type { LeaseQuestion } from '../queries/find-leases.ts';
import type { LeaseWish } from '../queries/take-lease.ts';
import type { LeaseShare } from '../sql/lease-share.ts';
import { Asking } from './asking.ts';
import { keepOf, restMs } from './share-out.ts';

/** What was not used for so long is given back. */
const UNUSED_MS = 100;
/**
 * What is not used waits for the ends of so many claims first: the first may have been under way when it
 * became free, and was not for it.
 */
const CLAIMS_AWAITED = 2;
/** Ends of handlers within this time are told together. */
const GATHER_MS = 20;

/** What a worker may ask for now, of its {@link Lease}. */
export type Wish = Omit<LeaseWish, keyof LeaseQuestion | 'workerId'>;

/**
 * The slots that one worker has of one limit. It begins nothing beyond what it knows that it has: what it
 * gives back is not used from the moment at which that is said, and what it asks for not before the answer.
 * So whatever becomes of a statement or its answer, no more run than the table says.
 *
 * Times are of any monotonic clock.
 */
export class Lease {
  readonly question: LeaseQuestion;
  /** `null`: not read yet. */
  #limit: number | undefined | null = null;
  /** As the table had it, the last time that it said so. */
  #has = 0;
  /** How many may run: no more than the table has, whatever happens to what is under way. */
  #cap = 0;
  #running = 0;
  /** How many the table says that it could use. */
  #registered = 0;
  #era = 0;
  /** What the table has may differ from what it had. */
  #uncertain = false;
  #sent: Wish | undefined;
  /** How often something was sent or came back. */
  #version = 0;
  /** How many it may keep: see `keepOf`. */
  #keep = Number.POSITIVE_INFINITY;
  readonly #asking = new Asking();
  /** Whether one became free for it while a question was under way. */
  #succeeds = false;
  #nextGiveMs = Number.NEGATIVE_INFINITY;
  #heldSinceMs = 0;
  /** Since when some are not used, and the most that ran since. */
  #unusedMs = Number.POSITIVE_INFINITY;
  #peak = 0;
  /** Whether a claim is under way, which may bring jobs for what is not used. */
  #claiming = false;
  /** How many claims may still end before what is not used is given back. */
  #awaited = 0;
  readonly #delays = new Doubling();
  #retryMs = Number.NEGATIVE_INFINITY;
  #sharing = 0;

  constructor(question: LeaseQuestion) {
    this.question = question;
  }

  get running(): number {
    return this.#running;
  }

  /** Whether it got less of a limit than it wanted, the last time that it asked. */
  get refused(): boolean {
    return this.#limit !== undefined && this.#asking.refused;
  }

  /** How many workers share the limit, as far as it knows. */
  get sharing(): number {
    return this.#sharing;
  }

  /** Whether the worker has some, or has asked for some. */
  get inUse(): boolean {
    return this.#has > 0 || this.#registered > 0 || this.#uncertain;
  }

  /** Whether another handler may begin. */
  get mayBegin(): boolean {
    return this.#limit === undefined || this.#running < this.#cap;
  }

  begin(): void {
    this.#running++;
    this.#peak = Math.max(this.#peak, this.#running);
    if (this.#running >= this.#cap) this.#unusedMs = Number.POSITIVE_INFINITY;
  }

  /** Returns whether there is a slot to give back now, as others lack theirs. */
  end(nowMs: number): boolean {
    this.#running--;
    this.#shrink();
    if (this.#running < this.#cap && this.#unusedMs === Number.POSITIVE_INFINITY) this.#noteUnused(nowMs);
    return this.#cap < this.#has;
  }

  /** A claim is sent. */
  noteClaiming(): void {
    this.#claiming = true;
  }

  /** It has ended; returns whether something that is not used has waited for that. */
  noteClaimed(nowMs: number): boolean {
    const awaits = this.#awaitsClaim;
    this.#claiming = false;
    if (!awaits) return false;
    this.#awaited--;
    this.#unusedMs = nowMs;
    return true;
  }

  get #awaitsClaim(): boolean {
    return this.#claiming && this.#awaited > 0 && this.#running < this.#cap;
  }

  /**
   * For how many handlers there may soon be room, jobs for which are worth a claim: unless it was refused
   * some, or others lack theirs, twice as many as it has. It asks for more when the jobs are there.
   */
  get room(): number {
    if (this.#limit === undefined) return Number.POSITIVE_INFINITY;
    if (this.#limit === null) return 0;
    const cap = Math.min(this.#cap, this.#keep);
    if (this.refused) return cap;
    return this.#keep < Number.POSITIVE_INFINITY ? Math.max(cap, 1) : cap + Math.max(cap, 1);
  }

  /**
   * What to ask for now; `undefined` for nothing.
   * @param appetite how many it could use
   */
  wish(nowMs: number, appetite: number): Wish | undefined {
    if (this.#sent !== undefined || this.#limit === null || nowMs < this.#retryMs) return undefined;
    if (this.#limit === undefined) return this.inUse ? this.#wish(0, 0, 0) : undefined;
    const mayAsk = nowMs >= this.#asking.nextMs;
    const asks = appetite > this.#cap && mayAsk;
    const isStale = this.#registered > this.#has && appetite <= this.#cap && mayAsk;
    // One that had its turn has none left to keep, and asks for the first of its next one.
    const most = this.#has === 0 ? Math.max(this.#keep, 1) : this.#keep;
    const want = asks ? Math.min(appetite, most) : this.#lessThanCap(nowMs);
    const gives = want < this.#has && nowMs >= this.#nextGiveMs;
    if (!(asks || gives || isStale || this.#uncertain)) return undefined;
    return this.#wish(Math.max(want, this.#running), appetite, this.#running);
  }

  #wish(want: number, wants: number, running: number): Wish {
    return { want, wants: Math.max(wants, want), running, era: this.#era };
  }

  /** When to look at {@link wish} again, though nothing has happened. */
  nextMs(nowMs: number, appetite: number): number {
    if (this.#sent !== undefined || this.#limit === null) return Number.POSITIVE_INFINITY;
    if (this.#uncertain) return this.#retryMs;
    if (this.#limit === undefined) return this.inUse ? this.#retryMs : Number.POSITIVE_INFINITY;
    const asksMs = appetite > this.#cap || this.#registered > this.#has ? this.#asking.nextMs : undefined;
    const givesMs = this.#cap < this.#has ? this.#nextGiveMs : undefined;
    const isUnused = this.#cap > 0 && !this.#awaitsClaim;
    const unusedMs = isUnused ? Math.min(this.#unusedMs, nowMs) + UNUSED_MS : undefined;
    const next = [asksMs, givesMs, unusedMs].filter((ms) => ms !== undefined);
    return Math.max(Math.min(...next), this.#retryMs);
  }

  /** It is sent. From now on no more than it will leave may run. */
  noteSent(wish: Wish, nowMs: number): void {
    this.#sent = wish;
    this.#version++;
    this.#cap = Math.min(this.#cap, wish.want);
    this.#nextGiveMs = nowMs + GATHER_MS;
  }

  /** The answer has come; `undefined`: the worker is not registered. */
  noteAnswer(share: LeaseShare | undefined, nowMs: number): void {
    const sent = this.#sent;
    this.#sent = undefined;
    this.#version++;
    this.#delays.reset();
    // The worker was declared gone meanwhile: the answer does not count.
    if (sent === undefined || sent.era !== this.#era) return;
    if (share === undefined) {
      this.noteGone();
      this.#retryMs = nowMs + this.#delays.firstMs;
      return;
    }
    this.#uncertain = false;
    this.#registered = sent.wants;
    if (share.has >= sent.wants) this.#asking.noteEnough();
    else this.#asking.noteLess(share.has > this.#has, share.sharing, nowMs);
    this.#heed(share, nowMs);
    if (this.#succeeds) this.#asking.now(nowMs);
    this.#succeeds = false;
  }

  /**
   * What was sent has failed.
   * @param isLost whether it may have been carried out all the same, or may still be
   */
  noteFailure(nowMs: number, isLost: boolean): void {
    this.#sent = undefined;
    this.#version++;
    if (isLost) this.#era++;
    this.#uncertain = true;
    this.#retryMs = nowMs + jitter(this.#delays.next());
  }

  /** The worker was declared gone: it has no slots, and must report again what it runs. */
  noteGone(): void {
    this.#uncertain = this.inUse || this.#running > 0 || this.#sent !== undefined;
    this.#era++;
    this.#has = 0;
    this.#cap = 0;
    this.#registered = 0;
    this.#asking.noteEnough();
  }

  /** Slots may be free, or the database is back: ask soon instead of waiting longer. */
  askSoon(nowMs: number): void {
    this.#retryMs = Number.NEGATIVE_INFINITY;
    this.#asking.soon(nowMs);
  }

  /** Another worker has given back a slot for this one. */
  noteSucceeds(nowMs: number): void {
    this.#succeeds = this.#sent !== undefined;
    if (this.refused) this.#asking.now(nowMs);
  }

  /** To be handed back with what a look finds. */
  get version(): number {
    return this.#version;
  }

  /** What a look has found that began at `version`. */
  noteLook(share: LeaseShare, version: number, nowMs: number): void {
    // Something was sent or came back since: it is older than what is known.
    if (version !== this.#version || this.#sent !== undefined) return;
    if (share.has !== this.#has) {
      this.#uncertain = true;
      this.#era++;
    }
    this.#heed(share, nowMs, Math.min(share.has, this.#cap));
  }

  /** @param cap how many may run from now on */
  #heed(share: LeaseShare, nowMs: number, cap = share.has): void {
    if (this.#has === 0) this.#heldSinceMs = nowMs;
    const isRaised = (this.#limit ?? Number.POSITIVE_INFINITY) < (share.limit ?? 0);
    this.#limit = share.limit;
    this.#sharing = share.sharing;
    this.#has = share.has;
    this.#cap = cap;
    // It began without a limit, or without knowing of one: what runs is to be told.
    if (share.limit !== undefined && this.#running > share.has) this.#uncertain = true;
    this.#keep = keepOf(share, nowMs - this.#heldSinceMs);
    this.#shrink();
    if (this.#keep === 0) this.#asking.rest(restMs(share), nowMs);
    else if (isRaised) this.#asking.soon(nowMs);
    else if (this.#keep === Number.POSITIVE_INFINITY) this.#asking.endRest(nowMs);
    if (this.#running >= this.#cap) this.#unusedMs = Number.POSITIVE_INFINITY;
    else if (this.#unusedMs === Number.POSITIVE_INFINITY) this.#noteUnused(nowMs);
  }

  #shrink(): void {
    if (this.#cap > this.#keep) this.#cap = Math.max(this.#running, this.#keep);
  }

  #noteUnused(nowMs: number): void {
    this.#unusedMs = nowMs;
    this.#peak = this.#running;
    this.#awaited = CLAIMS_AWAITED;
  }

  #lessThanCap(nowMs: number): number {
    if (this.#awaitsClaim || nowMs < this.#unusedMs + UNUSED_MS) return this.#cap;
    const want = Math.min(this.#cap, this.#peak);
    this.#noteUnused(nowMs);
    return want;
  }
}

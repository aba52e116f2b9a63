import { Doubling } from '../../../core/time/doubling.ts';
import { jitter } from '../../../core/time/jitter.ts';
import type { LeaseQuestion, LeaseShare } from '../queries/find-leases.ts';
import type { LeaseWish } from '../queries/take-lease.ts';
import { Asking } from './asking.ts';
import { keepOf, restMs } from './share-out.ts';
import { UnusedSlots } from './unused-slots.ts';

/** Ends of handlers within this time are told together. */
const GATHER_MS = 20;

/** What a worker may ask for now, of its {@link Lease}. */
export type Wish = Omit<LeaseWish, keyof LeaseQuestion | 'workerId'>;

/**
 * The slots that one worker has of one limit. It begins nothing beyond what it knows that it has: what it
 * gives back is not used from the moment at which that is said, and what it asks for not before the answer.
 * So whatever becomes of a statement or its answer, no more run than the table says.
 *
 * What it knows of the limit is one of three.
 * - `unread`: nothing yet. Nothing begins, and nothing is asked.
 * - `unlimited`: all may begin. What it still has is given back.
 * - `limited`: no more than `#cap` run, and the table has at least `#cap` slots for it, also while a wish is
 *   under way or lost. More run only where they began before it knew, or before it was declared gone.
 *
 * Beside that stands what became of its last wish.
 * - `heard`: the table has what it said last.
 * - `sent`: no other one is sent until it is answered or has failed.
 * - `unsure`: the table may have something else, so it says again what it runs and wants. Where an earlier
 *   wish may still be carried out, the next one has a later era.
 *
 * Times are of any monotonic clock.
 */
export class Lease {
  readonly question: LeaseQuestion;
  /** What the table said last; `has` is 0 since it was declared gone. */
  #share: LeaseShare | undefined;
  #wish: 'heard' | 'unsure' | { readonly sent: Wish } = 'heard';
  #cap = 0;
  #running = 0;
  readonly #unused = new UnusedSlots();
  /** How many the table says that it could use. */
  #registered = 0;
  #era = 0;
  /** How often a wish was sent or came back: a look that began before knows less. */
  #version = 0;
  /** How many it may keep: see `keepOf`. */
  #keep = Number.POSITIVE_INFINITY;
  #heldSinceMs = 0;
  readonly #asking = new Asking();
  /** Whether a slot became free for it while a wish was under way. */
  #succeeds = false;
  #nextGiveMs = Number.NEGATIVE_INFINITY;
  readonly #delays = new Doubling();
  #retryMs = Number.NEGATIVE_INFINITY;

  constructor(question: LeaseQuestion) {
    this.question = question;
  }

  get #limit(): 'unread' | 'unlimited' | 'limited' {
    if (this.#share === undefined) return 'unread';
    return this.#share.limit === undefined ? 'unlimited' : 'limited';
  }

  get #has(): number {
    return this.#share?.has ?? 0;
  }

  get #isSent(): boolean {
    return typeof this.#wish === 'object';
  }

  get running(): number {
    return this.#running;
  }

  /** Whether it got less of a limit than it wanted, the last time that it asked. */
  get refused(): boolean {
    return this.#limit !== 'unlimited' && this.#asking.refused;
  }

  /** How many workers share the limit, as far as it knows. */
  get sharing(): number {
    return this.#share?.sharing ?? 0;
  }

  /** Whether the worker has some, or has asked for some. */
  get inUse(): boolean {
    return this.#has > 0 || this.#registered > 0 || this.#wish !== 'heard';
  }

  /** Whether another handler may begin. */
  get mayBegin(): boolean {
    return this.#limit === 'unlimited' || this.#running < this.#cap;
  }

  begin(): void {
    this.#running++;
    this.#unused.noteBegin(this.#running, this.#cap);
  }

  /** Returns whether there is a slot to give back now, as others lack theirs. */
  end(nowMs: number): boolean {
    this.#running--;
    this.#setCap(this.#cap, nowMs);
    return this.#cap < this.#has;
  }

  /** A claim is sent. */
  noteClaiming(): void {
    this.#unused.noteClaiming();
  }

  /** It has ended; returns whether something that is not used has waited for that. */
  noteClaimed(nowMs: number): boolean {
    return this.#unused.noteClaimed(nowMs);
  }

  /**
   * For how many handlers there may soon be room, jobs for which are worth a claim: unless it was refused
   * some, or others lack theirs, twice as many as it has. It asks for more when the jobs are there.
   */
  get room(): number {
    if (this.#limit === 'unlimited') return Number.POSITIVE_INFINITY;
    if (this.#limit === 'unread') return 0;
    const cap = Math.min(this.#cap, this.#keep);
    if (this.refused) return cap;
    return this.#keep < Number.POSITIVE_INFINITY ? Math.max(cap, 1) : cap + Math.max(cap, 1);
  }

  /**
   * What to ask for now; `undefined` for nothing.
   * @param appetite how many it could use
   */
  wish(nowMs: number, appetite: number): Wish | undefined {
    if (this.#isSent || this.#limit === 'unread' || nowMs < this.#retryMs) return undefined;
    const era = this.#era;
    if (this.#limit === 'unlimited') return this.inUse ? { want: 0, wants: 0, running: 0, era } : undefined;
    const mayAsk = nowMs >= this.#asking.nextMs;
    const asks = appetite > this.#cap && mayAsk;
    const isStale = this.#registered > this.#has && appetite <= this.#cap && mayAsk;
    // One that had its turn has none left to keep, and asks for the first of its next one.
    const most = this.#has === 0 ? Math.max(this.#keep, 1) : this.#keep;
    const running = this.#running;
    const want = asks ? Math.min(appetite, most) : this.#unused.lessThan(this.#cap, running, nowMs);
    const gives = want < this.#has && nowMs >= this.#nextGiveMs;
    if (!(asks || gives || isStale || this.#wish === 'unsure')) return undefined;
    return { want: Math.max(want, running), wants: Math.max(appetite, want, running), running, era };
  }

  /** When to look at {@link wish} again, though nothing has happened. */
  nextMs(nowMs: number, appetite: number): number {
    if (this.#isSent || this.#limit === 'unread') return Number.POSITIVE_INFINITY;
    if (this.#wish === 'unsure') return this.#retryMs;
    if (this.#limit === 'unlimited') return this.inUse ? this.#retryMs : Number.POSITIVE_INFINITY;
    const asksMs = appetite > this.#cap || this.#registered > this.#has ? this.#asking.nextMs : undefined;
    const givesMs = this.#cap < this.#has ? this.#nextGiveMs : undefined;
    const unusedMs = this.#cap > 0 ? this.#unused.nextMs(nowMs) : undefined;
    const next = [asksMs, givesMs, unusedMs].filter((ms) => ms !== undefined);
    return Math.max(Math.min(...next), this.#retryMs);
  }

  /** It is sent. From now on no more than it will leave may run. */
  noteSent(wish: Wish, nowMs: number): void {
    this.#wish = { sent: wish };
    this.#version++;
    this.#setCap(Math.min(this.#cap, wish.want), nowMs);
    this.#nextGiveMs = nowMs + GATHER_MS;
  }

  /** The answer has come; `undefined`: the worker is not registered. */
  noteAnswer(share: LeaseShare | undefined, nowMs: number): void {
    this.#version++;
    this.#delays.reset();
    if (typeof this.#wish !== 'object') return;
    const { sent } = this.#wish;
    this.#wish = 'unsure';
    // The worker was declared gone meanwhile: the answer does not count.
    if (sent.era !== this.#era) return;
    if (share === undefined) {
      this.noteGone();
      this.#retryMs = nowMs + this.#delays.firstMs;
      return;
    }
    this.#wish = 'heard';
    this.#registered = sent.wants;
    if (share.has >= sent.wants) this.#asking.noteEnough();
    else this.#asking.noteLess(share.has > this.#has, share.sharing, nowMs);
    this.#heed(share, share.has, nowMs);
    if (this.#succeeds) this.#asking.now(nowMs);
    this.#succeeds = false;
  }

  /**
   * What was sent has failed.
   * @param isLost whether it may have been carried out all the same, or may still be
   */
  noteFailure(nowMs: number, isLost: boolean): void {
    this.#wish = 'unsure';
    this.#version++;
    if (isLost) this.#era++;
    this.#retryMs = nowMs + jitter(this.#delays.next());
  }

  /** The worker was declared gone: it has no slots, and must report again what it runs. */
  noteGone(): void {
    if (!this.#isSent) this.#wish = this.inUse || this.#running > 0 ? 'unsure' : 'heard';
    this.#era++;
    this.#share &&= { ...this.#share, has: 0 };
    this.#cap = 0;
    this.#unused.noteNone();
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
    this.#succeeds = this.#isSent;
    if (this.refused) this.#asking.now(nowMs);
  }

  /** To be handed back with what a look finds. */
  get version(): number {
    return this.#version;
  }

  /** What a look has found that began at `version`. */
  noteLook(share: LeaseShare, version: number, nowMs: number): void {
    // A wish was sent or came back since: it is older than what is known.
    if (version !== this.#version || this.#isSent) return;
    if (share.has !== this.#has) {
      this.#wish = 'unsure';
      this.#era++;
    }
    this.#heed(share, Math.min(share.has, this.#cap), nowMs);
  }

  /** @param cap how many may run from now on */
  #heed(share: LeaseShare, cap: number, nowMs: number): void {
    if (this.#has === 0) this.#heldSinceMs = nowMs;
    const isRaised = (this.#share?.limit ?? Number.POSITIVE_INFINITY) < (share.limit ?? 0);
    this.#share = share;
    // It began without a limit, or without knowing of one: what runs is to be told.
    if (this.#limit === 'limited' && this.#running > share.has) this.#wish = 'unsure';
    this.#keep = keepOf(share, nowMs - this.#heldSinceMs);
    this.#setCap(cap, nowMs);
    if (this.#keep === 0) this.#asking.rest(restMs(share), nowMs);
    else if (isRaised) this.#asking.soon(nowMs);
    else if (this.#keep === Number.POSITIVE_INFINITY) this.#asking.endRest(nowMs);
  }

  /** What is more than it may keep ends with what runs in it. */
  #setCap(cap: number, nowMs: number): void {
    this.#cap = cap > this.#keep ? Math.max(this.#running, this.#keep) : cap;
    this.#unused.note(this.#running, this.#cap, nowMs);
  }
}

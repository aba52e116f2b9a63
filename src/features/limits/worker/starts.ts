import { Doubling } from '../../../core/time/doubling.ts';
import { jitter } from '../../../core/time/jitter.ts';
import type { RateQuestion, StartsGrant, StartsWish } from '../queries/take-starts.ts';
import type { Rate } from '../settings/limit-settings.ts';
import { Stretch } from './stretch.ts';

/** Starts are spent within this part of the window: the shorter it is, the more of the rate can be used. */
const PART = 40;
/** While less than half of the rate is used, they may be kept for longer, which costs fewer statements. */
const AMPLE_PART = 8;
const MAX_WITHIN_MS = 1_000;
/** An answer must not come when its starts are void already. */
const ROUND_TRIPS = 4;
/**
 * But starts count for as long as they may be kept, and a window more. So they may be kept for no more than
 * this part of the window, unless answers prove to take longer.
 */
const LONGEST_PART = 8;
const MAX_STRETCH = 32;
/** Of what is left no more than this part is taken for jobs that are not there yet. */
const AHEAD_PART = 4;
/** Workers that wait for the same starts do not all ask at the same instant. */
const SPREAD_PART = 4;

/** What a worker may ask for now, of its {@link Starts}. */
export type WantedStarts = Omit<StartsWish, keyof RateQuestion | 'workerId'>;

/** Jobs that could begin at once, if there were starts for them. */
export interface DueStarts {
  /** What all of them cost. */
  readonly all: number;
  /** What the first of them costs; 0 where there is none. */
  readonly first: number;
}

/** Starts that were taken together. */
interface Grant {
  readonly part: string;
  readonly untilMs: number;
  left: number;
}

/**
 * The starts that one worker has of one rate. A job spends its cost as its handler begins. Starts that were
 * not spent soon after they were asked for are void, and are given back with the next question: the table
 * counts them by that time. So no window sees more handlers begin than the rate says, whatever becomes of a
 * statement or its answer.
 *
 * Times are of any monotonic clock.
 */
export class Starts {
  readonly question: RateQuestion;
  #rate: Rate;
  /** The first to become void comes first. */
  #grants: Grant[] = [];
  #unspent: Record<string, number> = {};
  #sent: { readonly wish: WantedStarts; readonly atMs: number } | undefined;
  /** How many more were free, the last time that the table said so. */
  #left: number;
  /** When it said so, and from when on `#freeThen` of them are free. */
  #saidMs = Number.NEGATIVE_INFINITY;
  #freeAtMs = Number.NEGATIVE_INFINITY;
  #freeThen = 0;
  /** Whether none were left, and nothing was claimed for those that have become free since. */
  #isShut = false;
  /** From when on it may ask; until then it was refused some. */
  #askMs = Number.NEGATIVE_INFINITY;
  readonly #delays = new Doubling();
  readonly #stretch = new Stretch(MAX_STRETCH);
  /** So long before starts become void it asks for others, if it will need them. */
  #leadMs = 0;
  /** How many a millisecond it has lately spent. */
  #pace = 0;
  #spent = 0;
  #pacedMs = Number.NEGATIVE_INFINITY;
  /** With fewer than these it asks for more. */
  #lowMark = 0;

  constructor(question: RateQuestion) {
    this.question = question;
    this.#rate = question.declared;
    this.#left = question.declared.limit;
  }

  /** The most that may be spent within a window, as far as it knows. */
  get limit(): number {
    return this.#rate.limit;
  }

  /** How many it may spend now. */
  available(nowMs: number): number {
    let sum = 0;
    for (const { left, untilMs } of this.#grants) if (untilMs > nowMs) sum += left;
    return sum;
  }

  /** Whether it was refused some, and knows that there are none until later. */
  isRefused(nowMs: number): boolean {
    return nowMs < this.#askMs;
  }

  /** How many there may soon be, jobs for which are worth a claim. */
  room(nowMs: number): number {
    return this.available(nowMs) + this.#free(nowMs);
  }

  /** From when on jobs for those starts are worth a claim: the jobs must be here by then. */
  get #roomAtMs(): number {
    return this.#freeAtMs - Math.min(ROUND_TRIPS * this.#stretch.roundTripMs, this.#rate.perMs / PART);
  }

  #free(nowMs: number): number {
    if (nowMs >= this.#saidMs + 2 * this.#rate.perMs) return this.#rate.limit;
    return nowMs >= this.#roomAtMs ? Math.max(this.#left, this.#freeThen) : this.#left;
  }

  /** Whether more has become free since this was last asked: then claims are worth their statement again. */
  opens(nowMs: number): boolean {
    const opens = this.#isShut && nowMs >= this.#roomAtMs;
    if (opens) this.#isShut = false;
    return opens;
  }

  /**
   * Spends some of what is {@link available}; returns until when what they are for may begin. That is over
   * where some of them have become void since the look.
   */
  spend(cost: number, nowMs: number): number {
    this.#spent += cost;
    let missing = cost;
    let untilMs = Number.POSITIVE_INFINITY;
    for (const grant of this.#grants) {
      if (grant.untilMs <= nowMs || missing <= 0) continue;
      const taken = Math.min(grant.left, missing);
      grant.left -= taken;
      missing -= taken;
      if (taken > 0) untilMs = Math.min(untilMs, grant.untilMs);
    }
    if (this.#grants[0]?.left === 0) this.#grants = this.#grants.filter(({ left }) => left > 0);
    return missing > 0 ? nowMs : untilMs;
  }

  /** Whether a question is worth it, when a job of this cost is next, if any. */
  isWorthAsking(cost: number, nowMs: number): boolean {
    return this.#mayAsk(nowMs) && this.available(nowMs) < Math.max(cost, this.#lowMark);
  }

  #mayAsk(nowMs: number): boolean {
    return this.#sent === undefined && nowMs >= this.#askMs;
  }

  /** What to ask for now; `undefined` for nothing. */
  wish(nowMs: number, due: DueStarts): WantedStarts | undefined {
    if (!this.#mayAsk(nowMs)) return undefined;
    this.#discardVoid(nowMs);
    const withinMs = this.#withinMs(nowMs);
    const here = this.available(nowMs + this.#leadMs);
    const lacking = due.first > 0 && due.first > this.available(nowMs);
    const ahead = this.#spent > 0 ? this.#ahead(withinMs) : 0;
    if (lacking || (ahead > 0 && here < ahead / 2)) {
      const want = Math.max(due.all, due.first, ahead) - (lacking ? this.available(nowMs) : here);
      const least = Math.max(1, due.first - this.available(nowMs));
      return { want: Math.max(want, least), least, withinMs, unspent: this.#unspent };
    }
    const isOver = this.#grants.length === 0 && Object.keys(this.#unspent).length > 0;
    return isOver && due.all === 0 ? { want: 0, least: 1, withinMs, unspent: this.#unspent } : undefined;
  }

  /** How many starts it will spend soon at its pace, capped so that other workers do not run short. */
  #ahead(withinMs: number): number {
    return Math.floor(Math.min(this.#pace * withinMs, this.#left / AHEAD_PART));
  }

  #withinMs(nowMs: number): number {
    const { limit, perMs } = this.#rate;
    const part = this.#free(nowMs) * 2 > limit ? AMPLE_PART : PART;
    const roundTripsMs = Math.min(this.#stretch.roundTripMs * ROUND_TRIPS, perMs / LONGEST_PART);
    return Math.max(Math.min(perMs / part, MAX_WITHIN_MS), roundTripsMs) * this.#stretch.now;
  }

  /** When to look at {@link wish} again, though nothing has happened. */
  nextMs(nowMs: number): number {
    if (this.#sent !== undefined) return Number.POSITIVE_INFINITY;
    if (this.#isShut && nowMs < this.#roomAtMs) return this.#roomAtMs;
    if (nowMs < this.#askMs) return this.#askMs;
    const voidMs = this.#grants[0]?.untilMs ?? Number.POSITIVE_INFINITY;
    return voidMs - this.#leadMs > nowMs ? voidMs - this.#leadMs : voidMs;
  }

  /** It is sent. What it gives back is spent no more. */
  noteSent(wish: WantedStarts, nowMs: number): void {
    this.#sent = { wish, atMs: nowMs };
    this.#unspent = {};
    const pace = this.#spent / Math.max(nowMs - this.#pacedMs, 1);
    this.#pace = this.#pace === 0 ? pace : (this.#pace + pace) / 2;
    this.#spent = 0;
    this.#pacedMs = nowMs;
  }

  /** The answer has come; `undefined`: the worker is not registered. */
  noteAnswer(answer: StartsGrant | undefined, nowMs: number): void {
    const sent = this.#sent;
    this.#sent = undefined;
    this.#delays.reset();
    if (sent === undefined) return;
    const { wish, atMs } = sent;
    if (answer === undefined) {
      this.#askMs = nowMs + this.#delays.firstMs;
      return;
    }
    const { rate, granted, part, left, freeInMs, freeThen } = answer;
    this.#rate = rate;
    const isVoid = granted > 0 && nowMs >= atMs + wish.withinMs;
    const { now: stretch } = this.#stretch;
    this.#stretch.noteAnswer(nowMs - atMs);
    if (isVoid) this.#stretch.noteLate(stretch);
    this.#leadMs = Math.min(wish.withinMs / 2, 2 * this.#stretch.roundTripMs);
    if (granted > 0) this.#grants.push({ part, left: granted, untilMs: atMs + wish.withinMs });
    const isRefused = granted < wish.want;
    // What is free may be too few for the next job.
    this.#left = isRefused ? 0 : Math.max(left, 0);
    this.#saidMs = nowMs;
    this.#freeThen = Math.max(freeThen, 0);
    this.#freeAtMs = atMs + freeInMs;
    const spreadMs = Math.random() * (wish.withinMs / SPREAD_PART);
    this.#askMs = isRefused ? this.#freeAtMs + spreadMs : Number.NEGATIVE_INFINITY;
    if (isRefused) this.#freeAtMs = this.#askMs;
    this.#isShut = this.#left === 0;
    this.#lowMark = this.#ahead(wish.withinMs) / 2;
  }

  /** What was sent has failed. What it may have brought is lost, and free again after a window. */
  noteFailure(nowMs: number): void {
    this.#sent = undefined;
    this.#askMs = nowMs + jitter(this.#delays.next());
  }

  /** A look has found what was set at run time. */
  noteRate(set: Rate | undefined): void {
    const rate = set ?? this.question.declared;
    if (rate.limit === this.#rate.limit && rate.perMs === this.#rate.perMs) return;
    this.#rate = rate;
    this.#saidMs = Number.NEGATIVE_INFINITY;
    this.askSoon();
  }

  /** There is a database again, or another rate: it need not wait longer to ask. */
  askSoon(): void {
    this.#delays.reset();
    this.#askMs = Number.NEGATIVE_INFINITY;
  }

  #discardVoid(nowMs: number): void {
    for (const { part, left, untilMs } of this.#grants) {
      if (untilMs <= nowMs) this.#unspent[part] = (this.#unspent[part] ?? 0) + left;
    }
    this.#grants = this.#grants.filter(({ untilMs }) => untilMs > nowMs);
  }
}

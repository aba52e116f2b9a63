import type { Until } from '../base/until.ts';
import type { HotPolling } from './hot-polling.ts';

/** What a loop does after a claim. */
export type Next =
  /** Claims again at once. */
  | 'claim'
  /** Looks for what claims have passed: nothing may be left when it is over. */
  | 'sweep'
  /** The same, from where it stopped: no job was claimed since. */
  | 'sweep on'
  /** Nothing is left to do. */
  | 'over'
  /** Waits to be woken: the queue is idle. `anew`: jobs or notifications came since it last was. */
  | { readonly rest: 'until woken'; readonly anew: boolean }
  /** Waits, unless it is woken before. */
  | { readonly rest: 'ms'; readonly ms: number };

/** One claim, and how the queue stood. */
export interface ClaimResult {
  readonly demand: number;
  readonly claimed: number;
  /** Whether the claim was for jobs that are known by their ids, and not for the next ones in order. */
  readonly among: boolean;
  /** Whether no attempt ran when the claim began: what ends during a claim may be due again, unseen. */
  readonly quiet: boolean;
  /** Whether only a notification caused it, in a queue that notifies of each job. @default false */
  readonly told?: boolean | undefined;
  /** Whether it has seen the last due job. @default true */
  readonly sawEnd?: boolean | undefined;
  /** Whether jobs are left to be claimed although it brought fewer than it asked for. @default false */
  readonly goesOn?: boolean | undefined;
  readonly nowMs: number;
}

/** Decides, after each claim of one queue, when the next one is worth its statement. */
export class Pace {
  readonly #hotPolling: HotPolling;
  readonly #until: Until;
  readonly #pollIntervalMs: number;
  #eventful = true;
  /** A pass has begun and no job was claimed since. */
  #sweeping = false;
  /** The same, and it is over. */
  #swept = false;
  /** When it was notified of a job that may be behind what another claim had locked, and may leave. */
  #unseenMs: number | undefined;

  constructor(hotPolling: HotPolling, options: { readonly until: Until; readonly pollIntervalMs: number }) {
    this.#hotPolling = hotPolling;
    this.#until = options.until;
    this.#pollIntervalMs = options.pollIntervalMs;
  }

  /** A notification has come. @param othersNotify if not, jobs may follow without one */
  noteTold(nowMs: number, othersNotify: boolean): void {
    if (!othersNotify) this.#eventful = true;
    this.#hotPolling.note(nowMs, othersNotify);
  }

  /** What a drain has looked through says nothing of jobs that have become due since, or were committed. */
  begin(): void {
    this.#sweeping = false;
    this.#swept = false;
  }

  /** A pass is over; it counts unless {@link begin} was called meanwhile. */
  noteSwept(): void {
    this.#swept = this.#sweeping;
  }

  after({ demand, claimed, among, quiet, goesOn = false, nowMs, ...result }: ClaimResult): Next {
    const { told = false, sawEnd = true } = result;
    if (claimed > 0) {
      this.#eventful = true;
      this.#sweeping = false;
      this.#swept = false;
      this.#hotPolling.note(nowMs, told && sawEnd);
    }
    if (sawEnd) this.#unseenMs = undefined;
    else if (told) this.#unseenMs = nowMs;
    // Others take their turn between two claims of what lay behind.
    if (among || claimed >= demand || goesOn) return 'claim';
    if (this.#until === 'empty') {
      if (claimed > 0 || !quiet) return { rest: 'ms', ms: this.#pollIntervalMs };
      if (this.#swept) return 'over';
      const next = this.#sweeping ? 'sweep on' : 'sweep';
      this.#sweeping = true;
      return next;
    }
    const ms = this.#hotPolling.gapMs(nowMs, this.#unseenMs);
    if (ms !== undefined) return { rest: 'ms', ms };
    const anew = this.#eventful;
    this.#eventful = false;
    return { rest: 'until woken', anew };
  }
}

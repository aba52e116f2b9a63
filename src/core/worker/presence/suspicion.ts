import type { GoneWorker, WorkersCheck } from '../../queries/presence/check-workers.ts';

/**
 * Answers further apart have missed what was between: this worker was cut off, blocked or suspended. A
 * server's clock that has moved on by this much more than the time was set, or this machine was suspended.
 */
const MAX_GAP_MS = 4_500;
/** After it was cut off itself, a worker suspects no peer for as long as that took, within these bounds. */
const MIN_RESPITE_MS = 5_000;
const MAX_RESPITE_MS = 30_000;
/** When most of several connections seem to be gone at once, believing it takes this many times as long. */
const DISBELIEF = 4;

interface Suspect extends GoneWorker {
  readonly sinceMs: number;
}

type ServerClock = Pick<WorkersCheck, 'serverStartedAt' | 'serverMs'>;

/**
 * Decides from what checks have seen who is to be declared gone. A session that has ended is only a
 * suspicion: a worker whose connection was cut is back in a moment, with a new one or at least a beat. So it
 * must stay ended, and the worker silent, for `reconnectMs`. What looks like the death of others may be one's
 * own trouble, or everybody's: see the constants. Silence is believed at once, since it has lasted long
 * enough by the database's own clock, unless that clock was set.
 */
export class Suspicion {
  readonly #reconnectMs: number;
  #suspects = new Map<number, Suspect>();
  #lastMs: number | undefined;
  #respiteUntilMs = Number.NEGATIVE_INFINITY;
  #several = false;
  /** How far the clock of each server, by its start, is ahead of this worker's. */
  readonly #aheadMs = new Map<string, number>();
  #lastServer = '';

  constructor(reconnectMs: number) {
    this.#reconnectMs = reconnectMs;
  }

  /** Learns from a check at `nowMs` of any monotonic clock; returns who is to be declared gone now. */
  judge({ workers, gone }: Pick<WorkersCheck, 'workers' | 'gone'>, nowMs: number): GoneWorker[] {
    this.noteAnswer(nowMs);
    this.#suspects = new Map(
      gone.map((worker) => {
        const before = this.#suspects.get(worker.id);
        const same = before?.seen === worker.seen && before.why === worker.why;
        return [worker.id, same ? before : { ...worker, sinceMs: nowMs }];
      }),
    );
    // Workers that share a connection die, or are cut off, together.
    const lost = new Set(this.#lost.map(({ session }) => session)).size;
    this.#several = lost >= 2 && lost * 2 > workers;
    return [...this.#suspects.values()].filter((suspect) => this.#dueMs(suspect) <= nowMs);
  }

  /** The database has answered. A long silence before that was this worker's own trouble. */
  noteAnswer(nowMs: number): void {
    const gapMs = nowMs - (this.#lastMs ?? nowMs);
    this.#lastMs = nowMs;
    if (gapMs > MAX_GAP_MS) this.rest(nowMs, gapMs);
  }

  /**
   * Learns what a server's clock said to a question that was sent at `sentMs`. When it was set ahead, all
   * peers look silent until their next beat. Servers behind one address may differ forever, so each is
   * compared with itself; but one that takes over, with the one before it.
   */
  noteClock({ serverStartedAt, serverMs }: ServerClock, sentMs: number, nowMs: number): void {
    const aheadMs = serverMs - sentMs;
    const before = this.#aheadMs.get(serverStartedAt) ?? this.#aheadMs.get(this.#lastServer) ?? aheadMs;
    this.#aheadMs.set(serverStartedAt, aheadMs);
    this.#lastServer = serverStartedAt;
    if (aheadMs - before > MAX_GAP_MS) this.rest(nowMs, aheadMs - before);
  }

  /** Forgets its suspicions, and has none for a while: this worker was itself cut off for `cutOffMs`. */
  rest(nowMs: number, cutOffMs = 0): void {
    const respiteMs = Math.min(Math.max(cutOffMs, MIN_RESPITE_MS), MAX_RESPITE_MS);
    this.#respiteUntilMs = Math.max(this.#respiteUntilMs, nowMs + respiteMs);
    this.#suspects.clear();
  }

  /** In how many milliseconds the next suspect may be declared gone; `Infinity` when there is none. */
  inMs(nowMs: number): number {
    const inMs = [...this.#suspects.values()].map((suspect) => this.#dueMs(suspect) - nowMs);
    return Math.min(...inMs.filter((ms) => ms > 0));
  }

  get #lost(): Suspect[] {
    return [...this.#suspects.values()].filter(({ why }) => why === 'lost');
  }

  #dueMs({ why, sinceMs }: Suspect): number {
    const confirmedMs = this.#reconnectMs * (this.#several ? DISBELIEF : 1);
    return Math.max(this.#respiteUntilMs, sinceMs + (why === 'lost' ? confirmedMs : 0));
  }
}

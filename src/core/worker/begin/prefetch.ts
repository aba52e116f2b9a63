import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import { MAX_BEGUN } from './precious-attempt.ts';

/** Jobs that will have begun within this time are claimed ahead. */
const HORIZON_MS = 50;
/** After this long without a slot, what was claimed ahead is given back: another worker may have one. */
export const MAX_WAIT_MS = 500;
/** What will be called within this time is recorded as begun, or one for each slot. */
const SOON_MS = 2;
/** More brings no more throughput, and payloads take memory. */
const MAX_PREFETCH = 4_000;
/** The memory that waiting jobs may take, by the size that payloads have lately had. */
const MAX_BYTES = 8 * 1024 * 1024;
/** The least weight of one attempt in the average: it follows the last twenty or so. */
const WEIGHT = 0.05;
/** Fewer attempts than this tell nothing. */
const MIN_ATTEMPTS = 5;
/** How fast the most grows again, with each claim that finds jobs, after some did not begin in time. */
const GROWTH = 1.05;

/** The share of each kind among claimed jobs is that of the last hundred or so. */
const CLAIMED = 100;

/** How long handlers have lately taken. */
class Durations {
  attempts = 0;
  meanMs = 0;

  note(durationMs: number): void {
    this.attempts++;
    this.meanMs += (durationMs - this.meanMs) * Math.max(1 / this.attempts, WEIGHT);
  }
}

class Kind {
  durations = new Durations();
  /** Which part it is of the jobs that were lately claimed. */
  share = 0;
}

/**
 * How many jobs to claim ahead: as many as the handlers will finish within 50 ms, and as fit into memory. So
 * no-op jobs travel in hundreds per claim, and no worker hoards long jobs that it will not begin for minutes.
 */
export class Prefetch {
  #ofAll = new Durations();
  readonly #kinds = new Map<string, Kind>();
  /** How many of the last hundred claimed jobs are known. */
  #claimed = 0;
  /** How long one of them takes on average: slow ones are rare among the attempts that end. */
  #claimedMs = 0;
  #recentBytes = 0;
  /** The most that begin in time: handlers may be over at once, and the process short of a processor. */
  #most = MAX_PREFETCH;

  /** @param kind of the job; `undefined` where the call was for many of them */
  note(durationMs: number, kind?: string): void {
    this.#ofAll.note(durationMs);
    if (kind === undefined) return;
    const { durations, share } = this.#kind(kind);
    const beforeMs = durations.meanMs;
    durations.note(durationMs);
    this.#claimedMs += (durations.meanMs - beforeMs) * share;
  }

  #kind(name: string): Kind {
    const kind = this.#kinds.get(name) ?? new Kind();
    if (!this.#kinds.has(name)) this.#kinds.set(name, kind);
    return kind;
  }

  /**
   * How many jobs of these kinds, which wait in this order, will begin in time by what is known of each kind.
   * A kind without an ended attempt does not count as slow. The first jobs take the free slots, and so wait
   * for nothing.
   */
  inTime(kinds: readonly string[], slots: number, free: number): number {
    let leftMs = MAX_WAIT_MS * Math.max(slots, 1);
    for (const [at, kind] of kinds.entries()) {
      if (at < free) continue;
      if (leftMs < 0) return at;
      leftMs -= this.#kinds.get(kind)?.durations.meanMs ?? 0;
    }
    return kinds.length;
  }

  /** Learns from a claim. A large payload counts at once and is forgotten slowly, to spare memory. */
  noteClaimed(jobs: readonly Pick<ClaimedJob, 'kind' | 'payloadBytes'>[]): void {
    if (jobs.length === 0) return;
    this.#most = Math.min(this.#most * GROWTH, MAX_PREFETCH);
    this.#claimed = Math.min(this.#claimed + jobs.length, CLAIMED);
    const weight = Math.min(jobs.length / this.#claimed, 1);
    for (const kind of this.#kinds.values()) kind.share *= 1 - weight;
    for (const { kind, payloadBytes } of jobs) {
      this.#recentBytes = Math.max(payloadBytes, this.#recentBytes * (1 - WEIGHT));
      this.#kind(kind).share += weight / jobs.length;
    }
    this.#claimedMs = 0;
    for (const { durations, share } of this.#kinds.values()) this.#claimedMs += durations.meanMs * share;
  }

  /** Starts to learn again, more carefully: the expectation was wrong. */
  distrust(): void {
    this.#ofAll = new Durations();
    this.#most = Math.max(this.#most / 2, 1);
  }

  /** The same of one kind, whose jobs did not begin in time although others did. */
  distrustKind(name: string): void {
    const kind = this.#kind(name);
    this.#claimedMs -= kind.durations.meanMs * kind.share;
    kind.durations = new Durations();
  }

  /**
   * How many jobs to hold beyond the slots.
   * @param jobsPerSlot how many one attempt does, where batch handlers do several
   */
  size(concurrency: number, jobsPerSlot = 1): number {
    const byMemory = MAX_BYTES / Math.max(this.#recentBytes, 1);
    const soon = this.#within(HORIZON_MS, concurrency) * jobsPerSlot;
    return Math.floor(Math.min(soon, byMemory, this.#most));
  }

  /**
   * How many jobs of one kind to hold beyond the slots that it has, where it has a limit of its own: by how
   * long they take themselves, since others may begin meanwhile and end at once.
   */
  sizeOfKind(name: string, slots: number): number {
    const durations = this.#kinds.get(name)?.durations;
    if (durations === undefined || durations.attempts < MIN_ATTEMPTS) return 0;
    const soon = Math.floor((slots * HORIZON_MS) / Math.max(durations.meanMs, 0.01));
    return Math.min(soon, this.size(slots));
  }

  /**
   * How many jobs will begin in a moment, of those that wait: no more than there are slots, unless these are
   * used several times in that moment.
   */
  soon(concurrency: number, free: number): number {
    const within = this.#within(SOON_MS, concurrency);
    return Math.min(free + within, Math.max(concurrency, Math.min(within, MAX_BEGUN)));
  }

  /** Whether handlers are over so soon that a commit to disk for each round of them would hold them up. */
  get isHurried(): boolean {
    return this.#ofAll.attempts >= MIN_ATTEMPTS && this.#ofAll.meanMs < HORIZON_MS;
  }

  /** How many jobs of a group that run one after the other to claim at once. */
  run(): number {
    return Math.min(this.#within(HORIZON_MS, 1) + 1, MAX_PREFETCH);
  }

  /** How many attempts will end within this time, by what the handlers have lately taken. */
  #within(horizonMs: number, concurrency: number): number {
    if (this.#ofAll.attempts < MIN_ATTEMPTS) return 0;
    return Math.floor((concurrency * horizonMs) / Math.max(this.#ofAll.meanMs, this.#claimedMs, 0.01));
  }
}

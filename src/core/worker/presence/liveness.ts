import type { ProvenConnection } from '../../drivers/channel.ts';
import { beatWorker } from '../../queries/presence/beat-worker.ts';
import { checkWorkers } from '../../queries/presence/check-workers.ts';
import { notifyWorkers } from '../../queries/presence/notify-workers.ts';
import { type RemovedWorker, removeGoneWorkers } from '../../queries/presence/remove-gone-workers.ts';
import { removeWorker } from '../../queries/presence/remove-worker.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Runner } from '../../sql/executor.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import { isRefusal } from '../../sql/is-loss.ts';
import { WORKERS_GONE } from '../../sql/wake-channel.ts';
import type { GoneLimits } from '../../sql/why-gone.ts';
import { Condition } from '../../time/condition.ts';
import type { Deadline, Deadlines } from '../../time/deadlines.ts';
import { Doubling } from '../../time/doubling.ts';
import type { BackgroundPart } from '../base/background.ts';
import type { WorkerEmitter } from '../base/events.ts';
import { checkEveryMs } from './check-rate.ts';
import { Moment } from './moment.ts';
import { Session } from './session.ts';
import { Suspicion } from './suspicion.ts';

/** How often a worker without jobs looks whether others are gone, and whether it is itself. */
const CHECK_MS = 1_500;
/** A worker with jobs looks more often, since a busy machine delays each step of a recovery. */
const BUSY_CHECK_MS = 1_000;
/** By up to this part sooner, at random: workers that look together find a death no sooner than one. */
const BUSY_SPREAD = 0.25;
/** With the first look after this time it says that it is alive. */
const HEARTBEAT_MS = 4_000;
/** Without checks, sooner: a longer silence would count as its own trouble. */
const LONE_HEARTBEAT_MS = 2_500;
/** Suspects may have to be looked at sooner, but not in a tight loop. */
const MIN_PAUSE_MS = 50;
/** Peers wait for a sign of life for `reconnectMs`, and a loss of the network may have taken most of it. */
const MAX_RETRY_MS = 500;
/** An outage is reported at once, and again at this interval while it lasts. */
const REPORT_EVERY_MS = 5_000;
/** A start waits no longer for its session, which comes in milliseconds unless something is wrong. */
const SESSION_WAIT_MS = 5_000;
/** Another connection is there in milliseconds as a rule; a peer waits a second at least. */
const REPLACE_MS = 600;
/** For this long after the server has started, which ends all sessions, a free lock says nothing. */
const START_RESPITE_MS = 10_000;

export interface LivenessOptions {
  readonly db: Runner;
  readonly deadlines: Deadlines;
  readonly tables: QueueTables;
  readonly workerId: number;
  readonly name: string;
  readonly queues: readonly string[];
  readonly kinds: readonly string[];
  /** See `WorkerOptions` for these three. */
  readonly silentMs: number;
  readonly frozenMs: number;
  readonly reconnectMs: number;
  readonly events: WorkerEmitter;
  /** Called when the database has been silent for `silentMs`: others may take the jobs over. */
  readonly onSilence: () => void;
  /** Whether the worker has jobs at this moment. */
  readonly hasJobs: () => boolean;
  /** Called when this worker had been declared gone: others may have claimed its jobs. */
  readonly onDeclaredGone: () => Promise<void>;
  /** Called when others were declared gone: their jobs are due. */
  readonly onOthersGone: () => void;
  /**
   * Called when another server answers than before, or the same one after a restart. It may lack the last
   * commits: a standby that had not received them, or a server that had not written them to its disk.
   */
  readonly onOtherServer: () => void;
  /** Called when the database answers again after it did not. */
  readonly onReturn: () => void;
}

/**
 * Keeps a worker's row in `queue_workers` fresh, and removes those of workers that are gone, whose jobs the
 * next sweep then finds due. Every worker watches all others; there is no leader. A session shows that its
 * worker lives; one without (no connection of its own, a pooler in between) has its heartbeat alone.
 */
export class Liveness implements BackgroundPart {
  readonly #options: LivenessOptions;
  readonly #limits: GoneLimits;
  readonly #session: Session;
  readonly #suspicion: Suspicion;
  readonly #alarm = new Condition();
  #looking: Promise<number> = Promise.resolve(0);
  /** Tries to take the session lock that have not ended. */
  readonly #holding = new Set<Promise<void>>();
  #left = false;
  /** How often a session was taken or lost. */
  #changes = 0;
  /** When the worker last showed itself, and after how many of these changes. */
  #shown = { atMs: performance.now(), changes: 0 };
  /** When the last look was sent that the database has answered. */
  #answered = new Moment();
  /** Passes when it has been silent for too long. */
  #silence: Deadline | undefined;
  /** Whether the row, as far as is known, shows a session. */
  #showsSession = false;
  /** When it last lost its session. */
  #lostMs = Number.NEGATIVE_INFINITY;
  /** When it was registered, by the database's clock. */
  #startedAt: string | undefined;
  /** The starts of all servers that have answered: behind one address there may be several. */
  readonly #serverStarts = new Set<string>();
  /** It was declared gone, and has not yet looked what it has lost. */
  #wasGone = false;
  /** It was cut off when an answer came, and what waits for the end of that was not told yet. */
  #wasCutOff = false;
  /** How many workers serve the same queues and kinds, this one included. */
  crew = 1;
  /** Until then it only says that it is alive. */
  #nextCheckMs = Number.NEGATIVE_INFINITY;
  readonly #delays = new Doubling(250, MAX_RETRY_MS);
  #reportedMs = Number.NEGATIVE_INFINITY;
  /** Whether a session may still come before the first claim. */
  #expectsSession = true;
  #markReady: () => void = () => undefined;
  /**
   * Fulfilled when the worker may claim: it has looked who is gone, and its row shows its session, if any;
   * else its jobs would wait half a minute if it died now. After a few seconds it is fulfilled anyway.
   */
  readonly ready = new Promise<void>((resolve) => {
    this.#markReady = resolve;
  });

  constructor(options: LivenessOptions) {
    this.#options = options;
    const { db, tables, events, silentMs, frozenMs, reconnectMs } = options;
    this.#limits = { silentMs, frozenMs, startRespiteMs: START_RESPITE_MS };
    this.#suspicion = new Suspicion(reconnectMs);
    let heldBefore = false;
    this.#session = new Session({
      db,
      tables,
      events,
      onChange: () => {
        // Peers that could not reach the database either are back no sooner than this one.
        if (heldBefore) this.#suspicion.rest(performance.now());
        heldBefore = true;
        if (this.#session.pid === undefined) this.#lostMs = performance.now();
        this.#changes++;
        this.#alarm.signal();
      },
      onRefused: () => this.expectNoSession(),
    });
  }

  /** How long ago, in milliseconds, the last beat was sent that the database has answered. */
  get lastBeatMs(): number {
    return performance.now() - this.#shown.atMs;
  }

  /**
   * Whether no look was answered for as long as peers need to declare this worker gone: the network is
   * silent, or this process was stopped, blocked or suspended. They may have its jobs by now, so until the
   * next answer it claims nothing and begins nothing; nor until it knows what it has lost, if they have
   * declared it so.
   */
  get isCutOff(): boolean {
    if (this.#wasGone) return true;
    const { silentMs, reconnectMs } = this.#options;
    const patienceMs = this.#showsSession ? reconnectMs + CHECK_MS : silentMs;
    return this.#answered.isPast(patienceMs);
  }

  /** Holds the session on this connection: notifications arrive on it, so it is this worker's own. */
  holdSession(connection: ProvenConnection): void {
    const holding = this.#session
      .hold(connection, this.#options.workerId)
      .finally(() => this.#holding.delete(holding));
    this.#holding.add(holding);
  }

  expectNoSession(): void {
    this.#expectsSession = false;
    this.#alarm.signal();
  }

  async run(signal: AbortSignal): Promise<void> {
    const latest = setTimeout(this.#markReady, SESSION_WAIT_MS);
    // The first look comes once there is a session to show, or none to expect.
    let sleepMs = SESSION_WAIT_MS;
    // Then workers that were started together do not look together.
    let share = Math.random();
    for (;;) {
      await this.#alarm.wait(sleepMs, signal);
      if (signal.aborted || this.#left) break;
      sleepMs = share * (await this.look());
      share = 1;
    }
    clearTimeout(latest);
    this.#endSilence();
    await Promise.all(this.#holding);
  }

  /** Removes the worker's row. It looks no more, or its next beat would bring the row back. */
  async leave(): Promise<void> {
    this.#left = true;
    this.#alarm.signal();
    await this.#looking;
    await removeWorker(this.#session.runner, this.#options.tables, this.#options.workerId);
    await this.#session.release(this.#options.workerId);
  }

  /** Looks who is gone, and shows that this worker lives. Never rejects; returns the ms to the next look. */
  look(): Promise<number> {
    this.#looking = this.#checked();
    return this.#looking;
  }

  async #checked(): Promise<number> {
    const { events, onReturn } = this.#options;
    // A signal from here on may tell of something that this look does not see.
    this.#alarm.clear();
    try {
      await this.#check();
    } catch (error) {
      // A server that is down is so for the peers as well.
      if (isRefusal(error)) this.#awaitSilence();
      const nowMs = performance.now();
      if (nowMs - this.#reportedMs >= REPORT_EVERY_MS) {
        this.#reportedMs = nowMs;
        events.emit('error', { error, during: 'the heartbeat' });
      }
      return this.#delays.next();
    }
    if (this.#shown.changes > 0 || !this.#expectsSession) this.#markReady();
    if (!this.#delays.isFirst || this.#wasCutOff) onReturn();
    this.#delays.reset();
    this.#wasCutOff = false;
    this.#reportedMs = Number.NEGATIVE_INFINITY;
    const nowMs = performance.now();
    const busyMs = BUSY_CHECK_MS * (1 - Math.random() * BUSY_SPREAD);
    const checkMs = this.#options.hasJobs()
      ? Math.min(Math.max(busyMs, this.#nextCheckMs - nowMs), CHECK_MS)
      : CHECK_MS;
    const sleepMs = Math.min(checkMs, this.#suspicion.inMs(nowMs), this.#replacingMs(nowMs) || checkMs);
    return Math.max(sleepMs, MIN_PAUSE_MS);
  }

  async #check(): Promise<void> {
    const { tables, workerId: id, name, queues, kinds } = this.#options;
    const { runner, pid: session, node } = this.#session;
    const worker = { id, name, queues, kinds, session, node };
    const sent = new Moment();
    const atMs = sent.ms;
    const changes = this.#changes;
    const lone = atMs < this.#nextCheckMs;
    // While nothing else is asked, only a beat shows that the database answers.
    const loneMs = Math.min(LONE_HEARTBEAT_MS, this.#options.reconnectMs);
    const heartbeatMs = lone ? loneMs : HEARTBEAT_MS;
    // Changes are counted: a session that is lost and taken again between two beats must show. Otherwise
    // peers that looked only before and after it mistake two short absences for a long one.
    const news = changes !== this.#shown.changes || atMs - this.#shown.atMs >= heartbeatMs;
    const beat = news && this.#replacingMs(atMs) === 0;
    if (lone && !beat) return;
    // A row that had to be inserted again means that this worker was declared gone.
    if (lone) {
      this.#wasGone ||= await beatWorker(runner, tables, worker);
      if (this.#wasGone) this.#nextCheckMs = atMs;
      else this.#noteAnswer(sent);
    }
    const check =
      atMs < this.#nextCheckMs
        ? undefined
        : await checkWorkers(runner, tables, { worker, beat, limits: this.#limits });
    if (beat) {
      this.#noteCutOff();
      this.#shown = { atMs, changes };
      this.#showsSession = session !== undefined;
    }
    if (check === undefined) return this.#suspicion.noteAnswer(performance.now());
    this.crew = check.crew;
    this.#noteServer(check.serverStartedAt);
    if (check.unlocked) this.#session.noteUnlocked(check.pid);
    this.#wasGone ||=
      check.startedAt === undefined || check.startedAt !== (this.#startedAt ?? check.startedAt);
    this.#startedAt = check.startedAt;
    if (!beat && check.startedAt === undefined) await beatWorker(runner, tables, worker);
    const wasGone = this.#wasGone;
    if (wasGone) await this.#learnOfLosses();
    this.#noteAnswer(sent);
    if (wasGone) this.#options.onReturn();
    const nowMs = performance.now();
    this.#suspicion.noteClock(check, atMs, nowMs);
    const condemned = this.#suspicion.judge(check, nowMs);
    this.#nextCheckMs = nowMs + Math.min(checkEveryMs(check.workers), this.#suspicion.inMs(nowMs));
    if (condemned.length === 0) return;
    await faultPoint('liveness: checked');
    const removed = await removeGoneWorkers(runner, tables, condemned, this.#limits);
    if (removed.length === 0) return;
    this.#announce(removed);
    // They may have served other queues than this one does.
    await notifyWorkers(runner, tables, WORKERS_GONE);
  }

  /** It was declared gone: what it has lost must be known before anything begins. */
  async #learnOfLosses(): Promise<void> {
    await faultPoint('liveness: returned');
    await this.#options.onDeclaredGone();
    this.#wasGone = false;
  }

  #noteServer(startedAt: string): void {
    if (this.#serverStarts.has(startedAt)) return;
    this.#serverStarts.add(startedAt);
    if (this.#serverStarts.size > 1) this.#options.onOtherServer();
  }

  #noteAnswer(sent: Moment): void {
    this.#noteCutOff();
    this.#answered = sent;
    this.#awaitSilence();
  }

  /** Before anything that may end it: it may have become so while a look was under way. */
  #noteCutOff(): void {
    this.#wasCutOff ||= this.isCutOff;
  }

  #awaitSilence(): void {
    const { deadlines, silentMs, onSilence } = this.#options;
    this.#endSilence();
    if (!this.#left) this.#silence = deadlines.add(silentMs, onSilence);
  }

  #endSilence(): void {
    if (this.#silence !== undefined) this.#options.deadlines.remove(this.#silence);
    this.#silence = undefined;
  }

  /**
   * For how many milliseconds yet another session may replace a lost one before the row says that there is
   * none: a worker that dies meanwhile is found by the session in its row, or else only after `silentMs`.
   */
  #replacingMs(nowMs: number): number {
    if (this.#session.pid !== undefined) return 0;
    return Math.max(this.#lostMs + REPLACE_MS - nowMs, 0);
  }

  #announce(removed: readonly RemovedWorker[]): void {
    this.#options.onOthersGone();
    for (const { id, name } of removed) this.#options.events.emit('gone', { workerId: id, name });
  }
}

import { beatWorker } from '../../queries/beat-worker.ts';
import { checkWorkers } from '../../queries/check-workers.ts';
import { registerWorker } from '../../queries/register-worker.ts';
import { type RemovedWorker, removeGoneWorkers } from '../../queries/remove-gone-workers.ts';
import { removeWorker } from '../../queries/remove-worker.ts';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import type { Database } from '../../sql/executor.ts';
import { faultPoint } from '../../sql/fault-point.ts';
import type { GoneLimits } from '../../sql/why-gone.ts';
import type { WorkerEmitter } from '../attempt/events.ts';
import { Condition } from '../time/condition.ts';
import type { ProvenConnection } from './listener.ts';
import { Session } from './session.ts';
import { Suspicion } from './suspicion.ts';

/** How often a worker looks whether others are gone, and whether it is itself. */
const CHECK_MS = 1_500;
/** With every third check it says that it is alive: every 4.5 seconds. */
const HEARTBEAT_MS = 4_000;
/** Suspects may have to be looked at sooner, but not in a tight loop. */
const MIN_PAUSE_MS = 50;
const FIRST_RETRY_MS = 250;
/** Peers wait for a sign of life for `reconnectMs`, and a loss of the network may have taken most of it. */
const MAX_RETRY_MS = 500;
/** An outage is reported at once, and again so often while it lasts. */
const REPORT_EVERY_MS = 5_000;
/** The server's start has ended all sessions: for so long after it a free lock says nothing. */
const START_RESPITE_MS = 10_000;

export interface LivenessOptions {
  readonly db: Database;
  readonly tables: QueueTables;
  readonly name: string;
  readonly queues: readonly string[];
  /** A worker without a session that has not been seen for so long is gone. */
  readonly silentMs: number;
  /** A worker that holds its session and has not been seen for so long is gone. */
  readonly frozenMs: number;
  /** A worker whose session has ended is gone when it has not shown itself for so long. */
  readonly reconnectMs: number;
  readonly events: WorkerEmitter;
  /** Called when this worker had been declared gone: others may have claimed its jobs. */
  readonly onDeclaredGone: () => Promise<void>;
  /** Called when others were declared gone: their jobs are due. */
  readonly onOthersGone: () => void;
  /** Called when the database answers again after it did not. */
  readonly onReturn: () => void;
}

/**
 * Keeps a worker's row in `queue_workers` fresh, and removes the rows of workers that are gone, whose jobs are then due again for the
 * next sweep. Every worker watches all others; there is no leader.
 *
 * A worker that holds a session shows by it that it lives. One that cannot (no connection of its own, a pooler in between)
 * is known by its heartbeat alone.
 */
export class Liveness {
  readonly #options: LivenessOptions;
  readonly #limits: GoneLimits;
  readonly #session: Session;
  readonly #suspicion: Suspicion;
  readonly #stopping = new AbortController();
  readonly #alarm = new Condition();
  #workerId: number | undefined;
  #watching: Promise<void> = Promise.resolve();
  /** How often a session was taken or lost. */
  #changes = 0;
  /** When the worker last showed itself, and after how many of these changes. */
  #shown = { atMs: 0, changes: 0 };
  /** When it was registered, by the database. */
  #startedAt: string | undefined;
  /** It was declared gone, and has not looked yet what it has lost. */
  #wasGone = false;
  #failures = 0;
  #reportedMs = Number.NEGATIVE_INFINITY;

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
        this.#changes++;
        this.#alarm.signal();
      },
    });
  }

  /** Registers, and looks once who is gone, so that what they held is due for the first claim; answers the worker's id. */
  async start(): Promise<number> {
    const { db, tables, name, queues } = this.#options;
    const id = await registerWorker(db, tables, { name, queues });
    this.#workerId = id;
    this.#shown = { atMs: performance.now(), changes: 0 };
    await this.#look(id);
    this.#watching = this.#watch(id);
    return id;
  }

  /** Notifications arrive on this connection, so it is this worker's own: its session is to be held on it. */
  holdSession(connection: ProvenConnection): void {
    if (this.#workerId !== undefined) void this.#session.hold(connection, this.#workerId);
  }

  /** Takes the worker out of the living. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#alarm.signal();
    await this.#watching;
    if (this.#workerId === undefined) return;
    await removeWorker(this.#session.runner, this.#options.tables, this.#workerId);
    this.#session.release(this.#workerId);
  }

  async #watch(id: number): Promise<void> {
    // Workers that were started together do not look together.
    let pauseMs = Math.random() * CHECK_MS;
    for (;;) {
      await this.#alarm.wait(pauseMs);
      if (this.#stopping.signal.aborted) return;
      pauseMs = await this.#look(id);
    }
  }

  /** Never rejects; answers in how many milliseconds to look again. */
  async #look(id: number): Promise<number> {
    const { events, onReturn } = this.#options;
    // What rings from here on may not be seen any more.
    this.#alarm.clear();
    try {
      await this.#check(id);
    } catch (error) {
      const nowMs = performance.now();
      if (nowMs - this.#reportedMs >= REPORT_EVERY_MS) {
        this.#reportedMs = nowMs;
        events.emit('error', { error, during: 'the heartbeat' });
      }
      return Math.min(FIRST_RETRY_MS * 2 ** this.#failures++, MAX_RETRY_MS);
    }
    if (this.#failures > 0) onReturn();
    this.#failures = 0;
    this.#reportedMs = Number.NEGATIVE_INFINITY;
    const suspectsMs = this.#suspicion.inMs(performance.now());
    return Math.max(Math.min(CHECK_MS, suspectsMs), MIN_PAUSE_MS);
  }

  async #check(id: number): Promise<void> {
    const { tables, name, queues, onDeclaredGone } = this.#options;
    const { runner, held: session } = this.#session;
    const worker = { id, name, queues, session };
    const atMs = performance.now();
    const changes = this.#changes;
    // Of changes, not of what has come of them: a session that was lost and taken anew between two beats must show, or else peers that looked
    // only before and after it take two short absences for a long one.
    const beat = changes !== this.#shown.changes || atMs - this.#shown.atMs >= HEARTBEAT_MS;
    const check = await checkWorkers(runner, tables, { worker, beat, limits: this.#limits });
    if (beat) this.#shown = { atMs, changes };
    if (check.unlocked) this.#session.noteUnlocked(check.pid);
    this.#wasGone ||=
      check.startedAt === undefined || check.startedAt !== (this.#startedAt ?? check.startedAt);
    this.#startedAt = check.startedAt;
    if (!beat && check.startedAt === undefined) await beatWorker(runner, tables, worker);
    if (this.#wasGone) {
      await faultPoint('liveness: returned');
      await onDeclaredGone();
    }
    this.#wasGone = false;
    const condemned = this.#suspicion.judge(check, performance.now());
    if (condemned.length === 0) return;
    await faultPoint('liveness: checked');
    this.#announce(await removeGoneWorkers(runner, tables, condemned, this.#limits));
  }

  #announce(removed: readonly RemovedWorker[]): void {
    if (removed.length > 0) this.#options.onOthersGone();
    for (const { id, name } of removed) this.#options.events.emit('gone', { workerId: id, name });
  }
}

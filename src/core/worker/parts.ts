import { hasOneConnection } from '../drivers/detect.ts';
import { listenOrPoll } from '../drivers/listen-or-poll.ts';
import { pruneResults } from '../queries/operate/prune-results.ts';
import type { InContext } from '../runtime.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Database } from '../sql/executor.ts';
import { isDistributed } from '../sql/statement-context.ts';
import { REQUESTED, WORKERS_GONE } from '../sql/wake-channel.ts';
import { Retries } from '../time/retries.ts';
import type { BackgroundInWorker } from './background-feature.ts';
import type { BackgroundPart } from './base/background.ts';
import type { WorkerEmitter } from './base/events.ts';
import type { Until } from './base/until.ts';
import { ClaimLoop, type ClaimLoopOptions } from './claim/claim-loop.ts';
import { Sweeper } from './claim/sweeper.ts';
import { Watch } from './claim/watch.ts';
import type { ContextInWorker } from './context-feature.ts';
import type { HostWorker } from './host-worker.ts';
import type { LimitingInWorker } from './limiting-feature.ts';
import type { WorkerSettings } from './options.ts';
import { Listener } from './presence/listener.ts';
import { Liveness } from './presence/liveness.ts';
import type { EndedAttempt } from './run/ended-attempt.ts';
import type { Handler } from './run/handler.ts';
import { Progress } from './run/progress.ts';
import { OwnConnection } from './statements/own-connection.ts';
import type { Statements } from './statements/statements.ts';
import { EndNotices } from './upkeep/end-notices.ts';
import { firstPruneWithinMs, Pruning } from './upkeep/prune.ts';
import { Requests } from './upkeep/requests.ts';

/** How often a worker that listens still asks for due jobs: some become due without a notification. */
const WATCH_MS = 1_000;
/** How often idle queues are searched for jobs that claims have passed: most come without a notification. */
const LISTENING_SWEEP_MS = 2_000;
const POLLING_SWEEP_MS = 250;

export interface PartsOptions {
  readonly db: Database;
  readonly statements: Statements;
  readonly tables: QueueTables;
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly settings: WorkerSettings;
  /** `'empty'`: nothing tells it of new jobs. */
  readonly until: Until;
  readonly workerId: number;
  readonly events: WorkerEmitter;
  /** Runs what the app has written. */
  readonly inContext: InContext;
  /** Aborted when settling must no longer be repeated. */
  readonly giveUp: AbortSignal;
}

/**
 * The parts of a registered worker, connected, and none of them running yet. The only place that knows all of
 * them: what one part has to tell another goes through a function that is handed over here. None of these is
 * called before all parts are made.
 */
export class WorkerParts {
  readonly #options: PartsOptions;
  readonly #retries = new Retries();
  readonly listener: Listener;
  readonly liveness: Liveness;
  /** `undefined` where none of its queues has limits. */
  readonly limits: LimitingInWorker | undefined;
  /** `undefined` where the queue has no workflows. */
  readonly context: ContextInWorker | undefined;
  readonly features: readonly BackgroundInWorker[];
  readonly #watch: Watch;
  readonly #sweeper: Sweeper;
  readonly #progress: Progress;
  readonly #endNotices: EndNotices;
  readonly loops: readonly ClaimLoop[];
  readonly #loopsByQueue: ReadonlyMap<string, ClaimLoop>;
  readonly requests: Requests;
  /** What runs beside the claims, until the worker stops. */
  readonly background: readonly BackgroundPart[];

  constructor(options: PartsOptions) {
    this.#options = options;
    const { statements, tables, events, settings, until } = options;
    const db = statements.of('upkeep');
    this.listener = this.#makeListener();
    this.liveness = this.#makeLiveness();
    const host = this.#host();
    this.limits = settings.limits?.forWorker(host);
    this.context = settings.context?.forWorker(host);
    this.features = settings.features.map((feature) => feature.forWorker(host));
    this.#watch = this.#makeWatch();
    this.#sweeper = this.#makeSweeper();
    this.#progress = new Progress({ db, tables }, events);
    this.#endNotices = new EndNotices({ db, tables, events });
    this.loops = this.#makeLoops();
    this.#loopsByQueue = new Map(this.loops.map((loop) => [loop.queue, loop]));
    if (until === 'empty') this.liveness.expectNoSession();
    this.requests = this.#makeRequests();
    this.background = this.#inBackground();
  }

  /**
   * Whether notifications arrive. Each stays on the node that it was sent on, so on Citus a worker asks as if
   * it heard none.
   */
  get #hearing(): Pick<Listener, 'listening'> {
    return isDistributed(this.#options.tables) ? { listening: false } : this.listener;
  }

  #makeListener(): Listener {
    const { db, statements, tables, settings, until, events } = this.#options;
    return new Listener({
      db: statements.of('listening'),
      tables,
      listen: settings.listen && until === 'stopped' ? listenOrPoll(db) : undefined,
      events,
      retries: this.#retries,
      onWake: (queue, othersNotify = false) => this.#wake(queue, othersNotify),
      // Without notifications these look more often.
      onPolling: () => {
        this.requests.wake();
        for (const part of this.features) part.look?.();
        this.#watch.look();
      },
      onProven: (connection) => {
        const own = new OwnConnection(connection, () => statements.noteAnswerBeside());
        statements.offer(own);
        this.liveness.holdSession(own);
      },
      onUnproven: () => this.liveness.expectNoSession(),
      onPoolEnded: (error) => statements.notePoolEnded(error),
    });
  }

  /** @param queue without it, of all: notifications may have been missed */
  #wake(queue: string | undefined, othersNotify: boolean): void {
    if (queue === undefined || queue === REQUESTED) {
      this.requests.wake();
      for (const part of this.features) part.look?.();
      this.limits?.look();
    }
    // Without groups the next sweep finds their jobs, within seconds.
    if (queue === WORKERS_GONE) {
      for (const loop of this.loops) if (loop.groups !== undefined) loop.sweepSoon();
    }
    const loop = queue === undefined ? undefined : this.#loopsByQueue.get(queue);
    if (queue === undefined) this.#watch.look();
    else if (loop === undefined) this.limits?.hear(queue);
    else loop.notify(othersNotify);
  }

  #makeLiveness(): Liveness {
    const { db, statements, tables, settings, handlers, workerId, events } = this.#options;
    return new Liveness({
      ...settings,
      db: statements.of('heartbeat'),
      deadlines: statements.deadlines,
      tables,
      workerId,
      queues: [...settings.servedQueues.keys()],
      kinds: [...handlers.keys()],
      events,
      onSilence: () => {
        // On one connection others wait behind the same transaction, and take nothing over.
        if (hasOneConnection(db)) return;
        for (const loop of this.loops) loop.forsake();
      },
      hasJobs: () => this.loops.some(({ attempts }) => attempts.size > 0),
      onDeclaredGone: async () => {
        this.limits?.noteGone();
        await Promise.all(this.loops.map((loop) => loop.holdings.endLost()));
      },
      onOthersGone: () => {
        for (const loop of this.loops) loop.sweepSoon();
        this.limits?.askSoon();
      },
      onOtherServer: () => {
        for (const loop of this.loops) loop.noteOtherServer();
      },
      onReturn: () => {
        this.#retries.now();
        this.limits?.askSoon();
        for (const loop of this.loops) loop.resumeAfterOutage();
        // Where nothing is notified, nothing else tells of what was enqueued meanwhile.
        this.#watch.look();
      },
    });
  }

  #host(): HostWorker {
    const { statements, tables, settings, handlers, until, workerId, events } = this.#options;
    return {
      statements,
      tables,
      workerId,
      servedQueues: settings.servedQueues,
      kinds: [...handlers.keys()],
      events,
      wake: (queue) => this.#loopsByQueue.get(queue)?.wake(),
      listener: this.#hearing,
      retries: this.#retries,
      until,
    };
  }

  #makeWatch(): Watch {
    const { statements, tables, settings, handlers, events } = this.#options;
    const { pollIntervalMs } = settings;
    const hearing = this.#hearing;
    return new Watch({
      runner: statements.of('sweeps', { prepared: true }),
      tables,
      kinds: [...handlers.keys()],
      intervalMs: () => (hearing.listening ? Math.max(WATCH_MS, pollIntervalMs) : pollIntervalMs),
      events,
    });
  }

  #makeSweeper(): Sweeper {
    const { statements, tables, settings, workerId, events } = this.#options;
    const hearing = this.#hearing;
    // A worker that polls rarely can sweep rarely.
    const pollingMs = Math.min(Math.max(POLLING_SWEEP_MS, settings.pollIntervalMs), LISTENING_SWEEP_MS);
    return new Sweeper({
      runner: statements.of('sweeps', { prepared: true }),
      tables,
      workerId,
      queues: () => this.loops.flatMap(({ lanes }) => lanes.all),
      idleMs: () => (hearing.listening ? LISTENING_SWEEP_MS : pollingMs),
      crew: () => this.liveness.crew,
      events,
      retries: this.#retries,
    });
  }

  #makeLoops(): ClaimLoop[] {
    const { statements, settings, handlers, until, events, giveUp } = this.#options;
    const shared = {
      environment: this.#environment(),
      claimRunner: statements.of('claims', { prepared: true }),
      settleRunner: statements.of('settlements', { prepared: true }),
      questionRunner: statements.of('settlements'),
      isCutOff: () => this.liveness.isCutOff,
      kinds: [...handlers.keys()],
      handlers,
      until,
      pollIntervalMs: settings.pollIntervalMs,
      events,
      watch: until === 'empty' ? undefined : this.#watch,
      sweeper: this.#sweeper,
      retries: this.#retries,
      giveUp,
    };
    return [...settings.servedQueues].map(
      ([queue, { concurrency, agingMs }]) =>
        new ClaimLoop({
          ...shared,
          queue,
          concurrency,
          agingMs,
          groups: this.limits?.groupsOf(queue),
          gate: this.limits?.gateOf(queue),
        }),
    );
  }

  /** What the attempts of all queues work with, and whom they tell. */
  #environment(): ClaimLoopOptions['environment'] {
    const { db, tables, workerId, settings, events, inContext } = this.#options;
    const counting = this.features.filter(({ noteAttempt }) => noteAttempt !== undefined);
    const onEnd = (ended: EndedAttempt) => {
      for (const part of counting) part.noteAttempt?.(ended);
    };
    return {
      db,
      tables,
      workerId,
      around: settings.around,
      added: this.context?.added,
      inContext,
      showsJobs: () => events.showsJobs,
      onBegin: ({ job }) => events.emit('began', { job }),
      onLeftThrown: ({ job: { id, queue } }, error) =>
        events.emit('error', { error, during: `the handler of job ${id} of '${queue}', which waits` }),
      onProgress: (attempt, value) => this.#progress.report(attempt, value),
      onJobEnd: (job) => {
        this.#endNotices.note(job);
        this.context?.noteLeft(job);
      },
      onEnd: counting.length === 0 ? undefined : onEnd,
    };
  }

  #makeRequests(): Requests {
    const { statements, tables, workerId, events } = this.#options;
    return new Requests({
      db: statements.of('requests'),
      tables,
      workerId,
      loops: this.loops,
      listener: this.#hearing,
      events,
      retries: this.#retries,
    });
  }

  #makePruning(): Pruning {
    const { statements, tables, settings, until, events } = this.#options;
    const { retentionMs } = settings;
    const db = statements.of('upkeep');
    return new Pruning({
      prune: (limit) => pruneResults(db, tables, { retentionMs, limit }),
      what: 'results',
      firstWithinMs: firstPruneWithinMs(until),
      events,
    });
  }

  #inBackground(): BackgroundPart[] {
    const { settings, until } = this.#options;
    return [
      this.liveness,
      this.requests,
      this.#progress,
      this.#endNotices,
      ...(settings.retentionMs === Number.POSITIVE_INFINITY ? [] : [this.#makePruning()]),
      ...(this.limits?.background ?? []),
      ...(this.context?.background ?? []),
      ...this.features.flatMap(({ background }) => background),
      // A worker that ends when its queues are empty waits for nothing.
      ...(until === 'empty' ? [] : [this.#watch, this.#sweeper, this.listener]),
    ];
  }
}

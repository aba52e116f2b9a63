import { listenOrPoll } from '../drivers/listen-or-poll.ts';
import { pruneResults } from '../queries/operate/prune-results.ts';
import type { InContext } from '../runtime.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import type { Database } from '../sql/executor.ts';
import { isDistributed } from '../sql/statement-context.ts';
import { REQUESTED } from '../sql/wake-channel.ts';
import { Retries } from '../time/retries.ts';
import type { BackgroundPart } from './base/background.ts';
import type { WorkerEmitter } from './base/events.ts';
import { ClaimLoop } from './claim/claim-loop.ts';
import { Sweeper } from './claim/sweeper.ts';
import { Watch } from './claim/watch.ts';
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
import type { ContextInWorker, FeatureContext, FeatureParts, WorkerFeature } from './worker-feature.ts';

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
  /** Whether it works only until its queues are empty; nothing then tells it of new jobs. */
  readonly untilEmpty: boolean;
  readonly workerId: number;
  readonly events: WorkerEmitter;
  /** Runs what the app has written. */
  readonly inContext: InContext;
  /** Aborted when settling must no longer be repeated. */
  readonly giveUp: AbortSignal;
}

/** The parts of a registered worker, none of them running yet. */
export interface WorkerParts {
  readonly loops: readonly ClaimLoop[];
  readonly liveness: Liveness;
  readonly listener: Listener;
  readonly requests: Requests;
  /** `undefined` where none of its queues has limits. */
  readonly limits: WorkerFeature | undefined;
  /** `undefined` where the queue has no workflows. */
  readonly context: ContextInWorker | undefined;
  /** What works beside the jobs. */
  readonly features: readonly FeatureParts[];
  readonly background: readonly BackgroundPart[];
}

/** Builds the parts of a worker and connects them; the only place that knows all of them. */
export function buildParts(options: PartsOptions): WorkerParts {
  const { db, statements, tables, handlers, settings, untilEmpty, workerId, events, giveUp } = options;
  const { servedQueues, pollIntervalMs, retentionMs, listen } = settings;
  const environment = { db, tables, workerId };
  const kinds = [...handlers.keys()];
  const retries = new Retries();
  const upkeep = statements.of('upkeep');
  const listener = new Listener({
    db: statements.of('listening'),
    tables,
    listen: listen && !untilEmpty ? listenOrPoll(db) : undefined,
    events,
    retries,
    onWake: (queue, othersNotify = false) => {
      if (queue === undefined || queue === REQUESTED) {
        requests.wake();
        for (const part of features) part.look?.();
        limits?.look();
      }
      if (queue === undefined) watch.look();
      else loopsByQueue.get(queue)?.notify(othersNotify);
    },
    // Without notifications these look more often.
    onPolling: () => {
      requests.wake();
      for (const part of features) part.look?.();
      watch.look();
    },
    onProven: (connection) => {
      const own = new OwnConnection(connection);
      statements.offer(own);
      liveness.holdSession(own);
    },
    onUnproven: () => liveness.expectNoSession(),
    onPoolEnded: (error) => statements.notePoolEnded(error),
  });
  // A notification stays on the node that it was sent on, so on Citus a worker asks as if it heard none.
  const hearing = isDistributed(tables) ? { listening: false } : listener;
  const liveness: Liveness = new Liveness({
    ...settings,
    db: statements.of('heartbeat'),
    deadlines: statements.deadlines,
    tables,
    workerId,
    queues: [...servedQueues.keys()],
    kinds,
    events,
    onSilence: () => {
      for (const loop of loops) loop.forsake();
    },
    hasJobs: () => loops.some(({ attempts }) => attempts.size > 0),
    onDeclaredGone: async () => {
      limits?.noteGone();
      await Promise.all(loops.map((loop) => loop.holdings.endLost()));
    },
    onOthersGone: () => {
      for (const loop of loops) loop.sweepSoon();
      limits?.askSoon();
    },
    onOtherServer: () => {
      for (const loop of loops) loop.noteOtherServer();
    },
    onReturn: () => {
      retries.now();
      limits?.askSoon();
      for (const loop of loops) loop.goOn();
    },
  });
  const worker: FeatureContext = {
    statements,
    tables,
    workerId,
    servedQueues,
    kinds,
    events,
    wake: (queue) => loopsByQueue.get(queue)?.wake(),
    listener: hearing,
    retries,
    untilEmpty,
  };
  const limits = settings.limits?.forWorker(worker);
  const context = settings.context?.forWorker(worker);
  const features = settings.features.map((feature) => feature.forWorker(worker));
  const watch = new Watch({
    runner: statements.of('sweeps', { prepared: true }),
    tables,
    kinds,
    intervalMs: () => (hearing.listening ? Math.max(WATCH_MS, pollIntervalMs) : pollIntervalMs),
    events,
  });
  // A worker that polls rarely can sweep rarely.
  const pollingSweepMs = Math.min(Math.max(POLLING_SWEEP_MS, pollIntervalMs), LISTENING_SWEEP_MS);
  const sweeper = new Sweeper({
    runner: statements.of('sweeps', { prepared: true }),
    tables,
    workerId,
    idleMs: () => (hearing.listening ? LISTENING_SWEEP_MS : pollingSweepMs),
    crew: () => liveness.crew,
    events,
    retries,
  });
  const progress = new Progress({ db: upkeep, tables }, events);
  const endNotices = new EndNotices({ db: upkeep, tables, events });
  const heeding = features.filter(({ noteEnd }) => noteEnd !== undefined);
  const noteEnd = (ended: EndedAttempt) => {
    for (const part of heeding) part.noteEnd?.(ended);
  };
  const claims = statements.of('claims', { prepared: true });
  const settlements = statements.of('settlements', { prepared: true });
  const questions = statements.of('settlements');
  const loops: readonly ClaimLoop[] = [...servedQueues].map(
    ([queue, { concurrency, agingMs }]) =>
      new ClaimLoop({
        environment: {
          ...environment,
          around: settings.around,
          added: context?.added,
          inContext: options.inContext,
          showsJobs: () => events.showsJobs,
          onBegin: ({ job }) => events.emit('began', { job }),
          onProgress: (attempt, value) => progress.report(attempt, value),
          onJobEnd: (job) => {
            endNotices.note(job);
            context?.noteEnd(job);
          },
          onEnd: heeding.length === 0 ? undefined : noteEnd,
        },
        claims,
        settlements,
        questions,
        isCutOff: () => liveness.isCutOff,
        queue,
        kinds,
        handlers,
        concurrency,
        groups: limits?.groupsOf(queue),
        agingMs,
        gate: limits?.gateOf(queue),
        pollIntervalMs,
        events,
        watch: untilEmpty ? undefined : watch,
        sweeper,
        retries,
        giveUp,
      }),
  );
  sweeper.serve(loops.flatMap(({ lanes }) => lanes.all));
  if (untilEmpty) liveness.expectNoSession();
  const loopsByQueue = new Map(loops.map((loop) => [loop.queue, loop]));
  const requests = new Requests({
    db: statements.of('requests'),
    tables,
    workerId,
    loops,
    listener: hearing,
    events,
    retries,
  });
  const ofResults = new Pruning({
    prune: (limit) => pruneResults(upkeep, tables, { retentionMs, limit }),
    what: 'results',
    firstWithinMs: firstPruneWithinMs(untilEmpty),
    events,
  });
  return {
    loops,
    liveness,
    listener,
    requests,
    limits,
    context,
    features,
    background: [
      liveness,
      requests,
      progress,
      endNotices,
      ...(retentionMs === Number.POSITIVE_INFINITY ? [] : [ofResults]),
      ...(limits?.background ?? []),
      ...(context?.background ?? []),
      ...features.flatMap(({ background }) => background),
      // A worker that ends when its queues are empty waits for nothing.
      ...(untilEmpty ? [] : [watch, sweeper, listener]),
    ],
  };
}

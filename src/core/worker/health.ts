import type { ClaimLoop } from './claim/claim-loop.ts';
import type { WorkerParts } from './parts.ts';
import type { WorkerPart } from './statements/statements.ts';

/** What {@link Worker.health} returns. It is known without a question to the database. */
export interface WorkerHealth {
  /**
   * Whether the process does its part: it answers, so its event loop turns, and nothing of the worker has
   * broken. An outage of the database changes nothing about it.
   */
  readonly live: boolean;
  /**
   * Whether the worker takes jobs: it has started, is not told to stop, and the database answers its
   * heartbeat, its claims and its settlements. `false` during a standstill: see {@link reasons}.
   */
  readonly ready: boolean;
  /**
   * How long ago, in milliseconds, the last heartbeat was sent that the database has answered; `undefined`
   * before the start. Usually below 6,000; `ready` allows 10,000.
   */
  readonly lastBeatMs: number | undefined;
  /**
   * By part of the worker, how long ago, in milliseconds, its first statement was sent that has no answer
   * yet, repetitions included. Parts that wait for nothing are missing. A few milliseconds are usual; `ready`
   * allows claims and settlements 10,000.
   */
  readonly unansweredMs: Readonly<Partial<Record<WorkerPart, number>>>;
  /** Whether notifications arrive; otherwise the worker polls. */
  readonly listening: boolean;
  /** How many handlers run. */
  readonly busy: number;
  /** How many may run at once: the concurrency of all queues together. */
  readonly slots: number;
  /** Why it is not live or not ready, a sentence each. */
  readonly reasons: readonly string[];
}

export interface HealthFacts {
  /** `undefined` before it is registered. */
  readonly parts: WorkerParts | undefined;
  readonly unansweredMs: WorkerHealth['unansweredMs'];
  readonly state: 'starting' | 'started' | 'stopping' | 'stopped';
  /** Whether a background part has ended before its time. */
  readonly hasFailed: boolean;
  readonly slots: number;
}

/** Two beats: workers show themselves about every 5 seconds. */
const READY_WITHIN_MS = 10_000;

const NOT_READY: Readonly<Record<HealthFacts['state'], string | undefined>> = {
  starting: 'The worker has not started yet',
  started: undefined,
  stopping: 'The worker is stopping',
  stopped: 'The worker has stopped',
};

export function healthOf({ parts, unansweredMs, state, hasFailed, slots }: HealthFacts): WorkerHealth {
  const lastBeatMs = parts === undefined ? undefined : Math.round(parts.liveness.lastBeatMs);
  const faults = hasFailed
    ? ['A background part of the worker failed (see its error event); restart the process']
    : [];
  const hindrance = NOT_READY[state];
  const reasons =
    hindrance === undefined
      ? [...faults, ...silences(parts, lastBeatMs, unansweredMs)]
      : [...faults, hindrance];
  return {
    live: faults.length === 0,
    ready: reasons.length === 0,
    lastBeatMs,
    unansweredMs,
    listening: parts?.listener.listening ?? false,
    busy: parts === undefined ? 0 : busyOf(parts.loops),
    slots,
    reasons,
  };
}

/** How many handlers run; those of a batch are one. */
export function busyOf(loops: readonly Pick<ClaimLoop, 'attempts'>[]): number {
  return loops.reduce((busy, { attempts }) => busy + attempts.busy, 0);
}

function silences(
  parts: WorkerParts | undefined,
  lastBeatMs: number | undefined,
  unansweredMs: WorkerHealth['unansweredMs'],
): string[] {
  const silences: string[] = [];
  const seconds = (ms: number) => `${Math.round(ms / 1_000)} s`;
  if (lastBeatMs !== undefined && lastBeatMs >= READY_WITHIN_MS) {
    silences.push(`The database has not answered a heartbeat for ${seconds(lastBeatMs)}`);
  }
  if (parts?.liveness.isCutOff) {
    silences.push(
      'The worker is suspended: the database has not answered for so long that other workers may have ' +
        'its jobs',
    );
  }
  for (const part of ['claims', 'settlements'] as const) {
    const ms = unansweredMs[part] ?? 0;
    if (ms >= READY_WITHIN_MS) silences.push(`The database has not answered the ${part} for ${seconds(ms)}`);
  }
  return silences;
}

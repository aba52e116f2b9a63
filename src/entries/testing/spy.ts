import type { Worker } from '../../index.ts';
import { checkDefinition, checkOptions, namesOf, shown } from '../../internal.ts';
import { checkDurationMs, checkId, MAX_TIMER_MS } from '../../testing-face.ts';
import {
  type Announced,
  fits,
  JOB_EVENTS,
  type JobEvent,
  type JobSelector,
  missed,
  type ToldOf,
} from './worker-record.ts';

/** The worker's events that a spy remembers: the newest. */
const REMEMBERED = 10_000;

const SELECTOR = namesOf<JobSelector>({ job: true, id: true, where: true, timeoutMs: true });

/** What {@link spy} returns. */
export interface WorkerSpy {
  /** What the worker has announced about jobs since, oldest first; the last 10,000. */
  readonly events: readonly Announced[];
  /**
   * Resolves with the first event of such a job, also when it has come already.
   * @throws Error when none comes within `timeoutMs`; the message says what came
   */
  waitForJob<TEvent extends JobEvent>(
    selector: JobSelector<NoInfer<TEvent>>,
    event: TEvent,
  ): Promise<ToldOf<TEvent>>;
  /** Listens no longer. What waits is told when its time is over. */
  stop(): void;
}

/**
 * Remembers what a worker announces about jobs, so that a test can wait for what may already have happened.
 * Begin it before the worker starts.
 *
 * ```ts
 * const seen = spy(worker);
 * await worker.start();
 * const { id } = await queue.enqueue(db, sendReceipt, { orderId: 1 });
 * await seen.waitForJob({ id }, 'completed');
 * ```
 *
 * @throws TypeError unless it is a worker
 */
export function spy(worker: Worker): WorkerSpy {
  return watch('waitForJob', worker);
}

/**
 * Resolves with a worker's next event of one sort, such as `completed`, of any job or of those selected. For
 * what may have happened before the call, use {@link spy}.
 *
 * ```ts
 * const completed = waitUntil(worker, 'completed', { job: sendReceipt });
 * await queue.enqueue(db, sendReceipt, { orderId: 1 });
 * await completed;
 * ```
 *
 * @throws Error when none comes within `timeoutMs`; the message says what came
 * @throws TypeError | RangeError for a wrong option
 */
export async function waitUntil<TEvent extends JobEvent>(
  worker: Worker,
  event: TEvent,
  selector: JobSelector<NoInfer<TEvent>> = {},
): Promise<ToldOf<TEvent>> {
  const seen = watch('waitUntil', worker);
  try {
    return await seen.waitForJob(selector, event);
  } finally {
    seen.stop();
  }
}

function watch(caller: string, worker: Worker): WorkerSpy {
  if (typeof worker?.on !== 'function' || typeof worker.off !== 'function') {
    throw new TypeError(`${caller} takes what createWorker() returns; got ${shown(worker)}`);
  }
  const events: Announced[] = [];
  const waiting = new Set<(announced: Announced) => void>();
  const listeners = JOB_EVENTS.map((event) => {
    const listener = (told: ToldOf<JobEvent>) => {
      const announced = { event, told };
      events.push(announced);
      if (events.length > REMEMBERED) events.shift();
      for (const hear of waiting) hear(announced);
    };
    worker.on(event, listener);
    return () => worker.off(event, listener);
  });
  return {
    events,
    waitForJob: async <TEvent extends JobEvent>(given: JobSelector<NoInfer<TEvent>>, event: TEvent) => {
      const selector = checkSelector(caller, given, event);
      return await new Promise<ToldOf<TEvent>>((resolve, reject) => {
        const hear = (announced: Announced): boolean => {
          if (announced.event !== event) return false;
          // The event's name says what it tells.
          const told = announced.told as ToldOf<TEvent>;
          if (!fits<TEvent>(told, selector)) return false;
          end();
          resolve(told);
          return true;
        };
        const timer = setTimeout(() => {
          end();
          reject(new Error(missed(caller, event, selector, events)));
        }, selector.timeoutMs);
        const end = () => {
          clearTimeout(timer);
          waiting.delete(hear);
        };
        if (!events.some(hear)) waiting.add(hear);
      });
    },
    stop: () => {
      for (const stop of listeners) stop();
    },
  };
}

function checkSelector<TEvent extends JobEvent>(
  caller: string,
  selector: JobSelector<TEvent>,
  event: TEvent,
): JobSelector<TEvent> & { timeoutMs: number } {
  if (!JOB_EVENTS.includes(event)) {
    throw new TypeError(`${caller}: the event must be one of ${JOB_EVENTS.join(', ')}; got ${shown(event)}`);
  }
  const { job, id, timeoutMs = 5_000 } = checkOptions(`${caller}: its selector`, selector, SELECTOR);
  if (job !== undefined) checkDefinition(caller, job);
  if (id !== undefined) checkId(caller, id);
  return { ...selector, timeoutMs: checkDurationMs(`${caller}: timeoutMs`, timeoutMs, 1, MAX_TIMER_MS) };
}

import { checkOptions, namesOf } from '../job/known-options.ts';
import { checkDurationMs, checkInteger, checkObject, checkText, MAX_NAME_BYTES } from '../job/limits.ts';
import { shown } from '../job/shown.ts';
import { warn } from '../runtime.ts';
import type { Handler } from './run/handler.ts';

/** How one queue is served. */
export interface QueueSettings {
  /** How many of its jobs run at once in this process, 1–10,000. @default the worker's */
  concurrency?: number | undefined;
  /**
   * Lets jobs of low priority begin in the end, however many of a better one come. Give all workers of the
   * queue the same value. `runNext` uses the priority alone.
   * @default undefined no job begins while one of a better priority is due
   */
  aging?: Aging | undefined;
}

/** How waiting makes jobs more urgent. */
export interface Aging {
  /**
   * How long a job is due, from its `run_at` on and by the database's clock, until it counts as one priority
   * better, in milliseconds, 100–3,155,760,000,000: after twice as long as two better, and so on, up to
   * priority 0. Among jobs that count as the same priority the oldest goes first; among those that count as 0
   * to within `afterMs`. So a job of priority `p` waits for no job that becomes due more than `p * afterMs`
   * after it. A retry starts to wait again.
   */
  afterMs: number;
}

const SETTINGS = namesOf<QueueSettings>({ concurrency: true, aging: true });
const AGING = namesOf<Aging>({ afterMs: true });

/** What the options of a worker say of its queues. */
interface GivenQueues<TDb> {
  readonly handlers: readonly Handler<TDb>[];
  readonly queues?: Readonly<Record<string, QueueSettings>> | undefined;
  readonly concurrency?: number | undefined;
}

export interface ServedQueue {
  readonly concurrency: number;
  readonly agingMs: number | undefined;
}

const DEFAULT_CONCURRENCY = 10;

/** Each costs 11 kB of memory, and a part of each look for due jobs. */
const MAX_QUEUES = 10_000;

/** Of the names in a message. */
const MAX_SHOWN = 3;

/** Shorter than the time between two looks at a busy queue, aging would order jobs by their time alone. */
const MIN_AGING_MS = 100;

/** @throws RangeError | TypeError naming the setting that is wrong */
export function servedQueues<TDb>(
  caller: string,
  { handlers, queues, concurrency: usual = DEFAULT_CONCURRENCY }: GivenQueues<TDb>,
): ReadonlyMap<string, ServedQueue> {
  checkConcurrency(`${caller}: concurrency`, usual);
  const named = new Set(handlers.map(({ job }) => job.queue));
  if (queues === undefined) {
    checkCount(caller, named.size);
    const settings = { concurrency: usual, agingMs: undefined };
    return new Map([...named].map((queue) => [queue, settings]));
  }
  checkByName(caller, queues);
  const entries = Object.entries(queues).map(([queue, settings]): [string, ServedQueue] => {
    const what = `${caller}: queues['${queue}']`;
    const { concurrency = usual, aging } = checkOptions(what, settings, SETTINGS);
    return [
      checkText(`${caller}: the name of a queue`, queue, MAX_NAME_BYTES),
      {
        concurrency: checkConcurrency(`${what}.concurrency`, concurrency),
        agingMs: aging === undefined ? undefined : checkAging(`${what}.aging`, aging),
      },
    ];
  });
  const served = new Map(entries);
  checkCount(caller, served.size);
  if (served.size === 0)
    throw new TypeError(`${caller}: queues is empty; name a queue, or leave it out to serve all`);
  for (const { job } of handlers) {
    if (!served.has(job.queue)) {
      // Allowed, since another worker may serve that queue, but usually a forgotten or misspelt name.
      warn(
        `This worker has a handler for '${job.kind}', whose queue '${job.queue}' is not among its queues: ` +
          Object.keys(queues).join(', '),
      );
    }
  }
  return served;
}

function checkCount(caller: string, queues: number): void {
  if (queues <= MAX_QUEUES) return;
  throw new RangeError(
    `${caller}: a worker serves at most ${MAX_QUEUES} queues, got ${queues}: ` +
      'divide them among several workers, or put jobs of many tenants into a few queues',
  );
}

/** `runNext` takes a list of names, so one may be given here, too. @throws TypeError with these names */
function checkByName(caller: string, queues: Readonly<Record<string, QueueSettings>>): void {
  if (!Array.isArray(queues)) {
    checkObject(`${caller}: queues`, queues);
    return;
  }
  const entries = queues.map((name) => `${shown(name)}: {}`);
  throw new TypeError(
    `${caller}: queues must be an object with the settings of each queue by its name, not an array; ` +
      `write queues: { ${entries.slice(0, MAX_SHOWN).join(', ')} }`,
  );
}

function checkConcurrency(what: string, concurrency: number): number {
  return checkInteger(what, concurrency, 1, 10_000);
}

function checkAging(what: string, aging: Aging): number {
  const { afterMs } = checkOptions(what, aging, AGING);
  return checkDurationMs(`${what}.afterMs`, afterMs, MIN_AGING_MS);
}

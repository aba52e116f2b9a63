import { type BatchObservableResult, diag, type Meter, metrics, type Observable } from '@opentelemetry/api';
import type { Worker, WorkerEvents } from '../../index.ts';
import { checkOptions, describeThrown, namesOf, resultWithin, shown } from '../../internal.ts';
import { CLIENT_ID, SCOPE, SYSTEM } from './attributes.ts';
import {
  type Figures,
  figureGauges,
  observeFigures,
  observeVitals,
  observeWorkflows,
  type Vitals,
  vitalGauges,
  type WorkflowFigures,
  workflowGauges,
} from './figures.ts';
import { type Listeners, workerCounts } from './worker-counts.ts';

/** The options of {@link observe}. */
export interface ObserveOptions {
  /** @default that of the global provider, which must be registered before */
  meter?: Meter | undefined;
  /**
   * What counts the jobs of the queues: `() => queue.stats(db)`. Asked at every export. Give it in one
   * process alone, or every replica reports the same numbers.
   * @default no gauges of jobs
   */
  stats?: (() => PromiseLike<Figures>) | undefined;
  /** What finds trouble: `() => queue.vitals(db)`. Asked at every export; in one process alone, too. */
  vitals?: (() => PromiseLike<Vitals>) | undefined;
  /**
   * What counts open flows and batches: `() => queue.workflows.stats(db)`. Asked at every export; in one
   * process alone, too.
   * @default no gauges of flows
   */
  workflows?: (() => PromiseLike<WorkflowFigures>) | undefined;
}

/** A worker, as {@link observe} uses it. */
export type ObservedWorker = Pick<Worker, 'on' | 'off' | 'health'>;

const OPTIONS = namesOf<ObserveOptions>({ meter: true, stats: true, vitals: true, workflows: true });

/**
 * Reports a worker's metrics: attempts by outcome, how long handlers ran and jobs waited, how long claims and
 * the writing of outcomes took, and its slots. Where it is given how to ask for them, it also reports the
 * figures of the queues. Call it before the worker starts.
 *
 * ```ts
 * const stop = observe(worker);
 * ```
 *
 * Figures that cannot be read within 5 seconds are left out of that export, and OpenTelemetry's `diag` is
 * told why.
 *
 * @returns a function that ends it
 * @throws TypeError when the worker or an option is wrong
 */
export function observe(worker: ObservedWorker, options: ObserveOptions = {}): () => void {
  if (typeof worker?.on !== 'function' || typeof worker.health !== 'function') {
    throw new TypeError(`observe takes what createWorker() returns; got ${shown(worker)}`);
  }
  const {
    meter = metrics.getMeter(SCOPE),
    stats,
    vitals,
    workflows,
  } = checkOptions('observe: options', options, OPTIONS);
  if (typeof meter?.createCounter !== 'function') {
    throw new TypeError(`observe: meter must be what metrics.getMeter() returns; got ${shown(meter)}`);
  }
  for (const [name, ask] of Object.entries({ stats, vitals, workflows })) {
    if (ask === undefined || typeof ask === 'function') continue;
    const call = name === 'workflows' ? 'workflows.stats' : name;
    throw new TypeError(
      `observe: ${name} must be a function, such as () => queue.${call}(db); got ${shown(ask)}`,
    );
  }
  const ends = [listenTo(worker, workerCounts(meter)), observeSlots(worker, meter)];
  if (stats !== undefined) ends.push(observeAnswers(meter, figureGauges(meter), stats, observeFigures));
  if (vitals !== undefined) ends.push(observeAnswers(meter, vitalGauges(meter), vitals, observeVitals));
  if (workflows !== undefined)
    ends.push(observeAnswers(meter, workflowGauges(meter), workflows, observeWorkflows));
  return () => {
    for (const end of ends) end();
  };
}

function listenTo(worker: ObservedWorker, listeners: Listeners): () => void {
  const ends = (Object.keys(listeners) as (keyof Listeners)[]).map((event) => listen(event));
  return () => {
    for (const end of ends) end();
  };

  function listen<K extends keyof Listeners>(event: K): () => void {
    const listener: (...told: WorkerEvents[K]) => void = listeners[event];
    worker.on(event, listener);
    return () => worker.off(event, listener);
  }
}

/** Gauges of what the worker knows of itself. */
function observeSlots(worker: ObservedWorker, meter: Meter): () => void {
  let name: string | undefined;
  const onStarted = (started: WorkerEvents['started'][0]) => {
    name = started.name;
  };
  worker.on('started', onStarted);
  const gauges = {
    slots: gauge('slots', '{slot}', 'How many handlers may run at once'),
    busy: gauge('busy', '{slot}', 'How many handlers are running'),
    listening: gauge('listening', '1', 'Whether notifications arrive (1), or the worker polls (0)'),
    ready: gauge('ready', '1', 'Whether the worker takes jobs (1): it has started, and the database answers'),
  };
  const callback = (result: BatchObservableResult) => {
    // Before the start it has no name, and nothing to say.
    if (name === undefined) return;
    const { slots, busy, listening, ready } = worker.health();
    const attributes = { ...SYSTEM, [CLIENT_ID]: name };
    result.observe(gauges.slots, slots, attributes);
    result.observe(gauges.busy, busy, attributes);
    result.observe(gauges.listening, Number(listening), attributes);
    result.observe(gauges.ready, Number(ready), attributes);
  };
  const all = Object.values(gauges);
  meter.addBatchObservableCallback(callback, all);
  return () => {
    worker.off('started', onStarted);
    meter.removeBatchObservableCallback(callback, all);
  };

  function gauge(name: string, unit: string, description: string) {
    return meter.createObservableGauge(`drizzle_queue.worker.${name}`, { unit, description });
  }
}

/** An export waits for all its figures: those of a database that is silent must not cost it the others. */
const ANSWER_WITHIN_MS = 5_000;
/** Then it will not come any more. Until then another question would take one more connection. */
const GIVEN_UP_AFTER_MS = 60_000;

/** Asks at every export, once at a time: exports of several readers share an answer that is under way. */
function observeAnswers<TAnswer, TGauges extends Readonly<Record<string, Observable>>>(
  meter: Meter,
  gauges: TGauges,
  ask: () => PromiseLike<TAnswer>,
  report: (result: BatchObservableResult, gauges: TGauges, answer: TAnswer) => void,
): () => void {
  let asking: Promise<TAnswer> | undefined;
  let askedMs = Number.NEGATIVE_INFINITY;
  const askOnce = async () => {
    const answer = (async () => await ask())();
    asking = answer;
    askedMs = performance.now();
    try {
      return await answer;
    } finally {
      if (asking === answer) asking = undefined;
    }
  };
  const callback = async (result: BatchObservableResult) => {
    try {
      if (performance.now() - askedMs > GIVEN_UP_AFTER_MS) asking = undefined;
      const answer = asking ?? askOnce();
      const inTime = await resultWithin(answer, askedMs + ANSWER_WITHIN_MS - performance.now());
      if (inTime === undefined) throw new Error(`no answer within ${ANSWER_WITHIN_MS / 1_000} s`);
      report(result, gauges, inTime);
    } catch (error) {
      const { name, message } = describeThrown(error);
      diag.warn(`drizzle-queue: figures could not be read: ${name}: ${message}`);
    }
  };
  const all = Object.values(gauges);
  meter.addBatchObservableCallback(callback, all);
  return () => meter.removeBatchObservableCallback(callback, all);
}

import { type Meter, type Tracer, trace } from '@opentelemetry/api';
import type { Around } from '../../index.ts';
import { checkBoolean, checkOptions, namesOf, shown } from '../../internal.ts';
import { SCOPE } from './attributes.ts';
import { SentMetrics } from './sent-metrics.ts';
import { traceAttempt, traceBatch } from './trace-attempt.ts';
import { traceEnqueue } from './trace-enqueue.ts';
import type { Tracing } from './tracing.ts';

/** The options of {@link otel}. */
export interface OtelOptions {
  /**
   * Whether jobs carry the trace that they were enqueued in, in their `metadata`: `traceparent` and
   * `tracestate`, about 70 bytes a job, in place of what the enqueue gave under these names.
   * @default true
   */
  propagate?: boolean | undefined;
  /** Whether they also carry the app's baggage, as `baggage`, and handlers have it. @default false */
  baggage?: boolean | undefined;
  /**
   * What an attempt's span has to do with the enqueue's. `link`: it begins a trace of its own that links to
   * the other, so that a job that enqueues the next one, a fan-out or a retry after a day makes no endless
   * trace. `parent`: it continues the enqueue's trace. Batches of several jobs always link.
   * @default 'link'
   */
  parent?: 'link' | 'parent' | undefined;
  /** @default that of the global provider, registered before or after */
  tracer?: Tracer | undefined;
  /** What enqueues are counted with. @default that of the global provider, registered before or after */
  meter?: Meter | undefined;
}

/** The three functions of an {@link Around}, for `createQueue` or to call from others. */
export type OtelAround = { readonly [K in keyof Required<Around>]: NonNullable<Around[K]> };

const OPTIONS = namesOf<OtelOptions>({
  propagate: true,
  baggage: true,
  parent: true,
  tracer: true,
  meter: true,
});

/**
 * Spans of every enqueue (`send {kind}`) and of every attempt (`process {kind}`), which jobs connect by what
 * they carry in their `metadata`; and the metrics of enqueues. Nothing is said of payloads and outputs.
 *
 * ```ts
 * const queue = createQueue({ around: otel() });
 * ```
 *
 * Without a registered SDK it does next to nothing. Workers' metrics: {@link observe}.
 *
 * @throws TypeError when an option is wrong
 */
export function otel(options: OtelOptions = {}): OtelAround {
  checkOptions('otel: options', options, OPTIONS);
  const { propagate = true, baggage = false, parent = 'link', tracer, meter } = options;
  checkBoolean('otel: propagate', propagate);
  checkBoolean('otel: baggage', baggage);
  if (parent !== 'link' && parent !== 'parent') {
    throw new TypeError(`otel: parent must be 'link' or 'parent'; got ${shown(parent)}`);
  }
  if (tracer !== undefined && typeof tracer?.startSpan !== 'function') {
    throw new TypeError(`otel: tracer must be what trace.getTracer() returns; got ${shown(tracer)}`);
  }
  if (meter !== undefined && typeof meter?.createCounter !== 'function') {
    throw new TypeError(`otel: meter must be what metrics.getMeter() returns; got ${shown(meter)}`);
  }
  const tracing: Tracing = {
    tracer: tracer ?? trace.getTracer(SCOPE),
    propagate,
    baggage,
    parent,
    sent: new SentMetrics(meter),
  };
  return {
    enqueue: (jobs, next) => traceEnqueue(tracing, jobs, next),
    run: (attempt, next) => traceAttempt(tracing, attempt, next),
    runBatch: (batch, next) => traceBatch(tracing, batch, next),
  };
}

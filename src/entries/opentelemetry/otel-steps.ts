import { context, type Meter, type Span, type Tracer, trace } from '@opentelemetry/api';
import type { StepObserver } from '../../index.ts';
import { checkOptions, namesOf, shown } from '../../internal.ts';
import {
  DESTINATION,
  KIND,
  MESSAGE_ID,
  SCOPE,
  STEP,
  STEP_ATTEMPT,
  STEP_KIND,
  STEP_OUTCOME,
  SYSTEM,
} from './attributes.ts';
import { type Carrier, extract, inject } from './carrier.ts';
import { fail } from './span-error.ts';
import { StepMetrics } from './step-metrics.ts';
import { ATTEMPT_SPAN, endWhenLeft } from './trace-attempt.ts';

/** The options of {@link otelSteps}. */
export interface OtelStepsOptions {
  /** @default that of the global provider, registered before or after */
  tracer?: Tracer | undefined;
  /** What times and counts steps. @default that of the global provider, registered before or after */
  meter?: Meter | undefined;
}

/**
 * What makes names of steps many: UUIDs, hexadecimal ids, other long ids, and numbers. A number ends where
 * its digits end, so that `turn-2-charge` and `turn-2-ship` are two names.
 */
const IDS = new RegExp(
  [
    '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}',
    '(?<![0-9a-z])(?=[a-f]*[0-9])[0-9a-f]{8,}(?![0-9a-z])',
    '(?<![0-9a-z])(?=[a-z]*[0-9])[0-9a-z]{16,}(?![0-9a-z])',
    '[0-9]+',
  ].join('|'),
  'gi',
);

const OPTIONS = namesOf<OtelStepsOptions>({ tracer: true, meter: true });

/**
 * Spans of the steps of workflows (`step {name}`), each within that of its attempt. The attempt after a wait
 * links to the wait, so that the parts of a workflow can be followed. A step that is only replayed has no
 * span.
 *
 * ```ts
 * const queue = createQueue({
 *   around: otel(),
 *   workflows: workflowsIn(workflows, { observe: otelSteps() }),
 * });
 * ```
 *
 * Names of spans must be few, so each run of digits in a step's name is `#` there. So is each id: a UUID, 8
 * or more hexadecimal digits, and 16 or more letters and digits, with at least one digit. The attribute
 * `drizzle_queue.step.name` has the whole name. Metrics have no names of steps.
 * Nothing is said of outputs and of the values of signals.
 *
 * @throws TypeError when an option is wrong
 */
export function otelSteps(options: OtelStepsOptions = {}): StepObserver {
  const { tracer = trace.getTracer(SCOPE), meter } = checkOptions('otelSteps: options', options, OPTIONS);
  if (typeof tracer?.startSpan !== 'function') {
    throw new TypeError(`otelSteps: tracer must be what trace.getTracer() returns; got ${shown(tracer)}`);
  }
  if (meter !== undefined && typeof meter?.createHistogram !== 'function') {
    throw new TypeError(`otelSteps: meter must be what metrics.getMeter() returns; got ${shown(meter)}`);
  }
  const measured = new StepMetrics(meter);
  return {
    begin: (step) => {
      const { job, name, kind, attempt, signal } = step;
      const startMs = performance.now();
      const span = tracer.startSpan(`step ${name.replaceAll(IDS, '#')}`, {
        attributes: {
          ...SYSTEM,
          [DESTINATION]: job.queue,
          [MESSAGE_ID]: String(job.id),
          [KIND]: job.kind,
          [STEP]: name,
          [STEP_KIND]: kind,
          [STEP_ATTEMPT]: attempt,
        },
      });
      const forget = endWhenLeft(span, signal, STEP_OUTCOME);
      const carrier: Carrier = {};
      inject(carrier, span.spanContext());
      const { traceparent } = carrier;
      return {
        trace: typeof traceparent === 'string' ? traceparent : undefined,
        run: (task) => context.with(trace.setSpan(context.active(), span), task),
        end: (end, error) => {
          forget();
          span.setAttribute(STEP_OUTCOME, end);
          if (end === 'failed') fail(span, error);
          span.end();
          measured.note(step, end, performance.now() - startMs);
        },
      };
    },
    resume: (traceparent) => {
      const before = extract({ traceparent });
      if (before !== undefined) attemptSpan()?.addLink({ context: before });
    },
  };
}

/** The span that `otel()` has begun; without `otel()` there is none to link from. */
function attemptSpan(): Span | undefined {
  // Only this entry sets it.
  return context.active().getValue(ATTEMPT_SPAN) as Span | undefined;
}

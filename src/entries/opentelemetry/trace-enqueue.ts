import { context, propagation, type Span, SpanKind, trace } from '@opentelemetry/api';
import type { JobToEnqueue, LimitedEnqueueResult } from '../../index.ts';
import {
  BATCH_COUNT,
  DESTINATION,
  DUPLICATES,
  KIND,
  MESSAGE_ID,
  OPERATION,
  OPERATION_TYPE,
  SYSTEM,
} from './attributes.ts';
import { inject, injectBaggage } from './carrier.ts';
import { errorType, fail } from './span-error.ts';
import type { Tracing } from './tracing.ts';

type Enqueued = readonly LimitedEnqueueResult[] | undefined;

/**
 * Runs an enqueue in a span, and gives its jobs the span's context. Not an async function: `enqueueQuery`
 * needs `next` to be called at once.
 */
export function traceEnqueue(
  { tracer, propagate, baggage, sent }: Tracing,
  jobs: readonly JobToEnqueue[],
  next: () => Promise<Enqueued>,
): Promise<void> {
  // Those of a flow may be of several kinds.
  const named = namesOf(jobs);
  const span = tracer.startSpan(`send ${jobs[0]?.kind ?? ''}`, {
    kind: SpanKind.PRODUCER,
    attributes: {
      ...SYSTEM,
      [OPERATION]: 'send',
      [OPERATION_TYPE]: 'send',
      ...named,
      ...(jobs.length > 1 && { [BATCH_COUNT]: jobs.length }),
    },
  });
  if (propagate) for (const { metadata } of jobs) inject(metadata, span.spanContext());
  if (baggage) for (const { metadata } of jobs) injectBaggage(metadata, propagation.getActiveBaggage());
  const startMs = performance.now();
  return context.with(trace.setSpan(context.active(), span), next).then(
    (enqueued) => {
      noteResults(span, enqueued);
      span.end();
      sent.noteDuration(named, performance.now() - startMs);
      for (const { of, count } of enqueuedOf(jobs, enqueued)) sent.noteJobs(namesOf([of]), count);
    },
    (error: unknown) => {
      fail(span, error);
      span.end();
      sent.noteDuration(named, performance.now() - startMs, errorType(error));
      throw error;
    },
  );
}

/** The kind and the queue, where all have the same. */
function namesOf(jobs: readonly JobToEnqueue[]): Record<string, string> {
  const { kind = '', queue = '' } = jobs[0] ?? {};
  return {
    ...(jobs.every((job) => job.kind === kind) && { [KIND]: kind }),
    ...(jobs.every((job) => job.queue === queue) && { [DESTINATION]: queue }),
  };
}

/** How many were enqueued of each kind in each queue. What `enqueueFrom` has inserted is not known here. */
function enqueuedOf(
  jobs: readonly JobToEnqueue[],
  enqueued: Enqueued,
): Iterable<{ readonly of: JobToEnqueue; readonly count: number }> {
  const counts = new Map<string, { readonly of: JobToEnqueue; count: number }>();
  for (const [at, { outcome }] of (enqueued ?? []).entries()) {
    const of = jobs[at];
    if (of === undefined || outcome !== 'enqueued') continue;
    const key = JSON.stringify([of.queue, of.kind]);
    const known = counts.get(key) ?? { of, count: 0 };
    known.count++;
    counts.set(key, known);
  }
  return counts.values();
}

function noteResults(span: Span, enqueued: Enqueued): void {
  if (enqueued === undefined) return;
  const [first] = enqueued;
  if (enqueued.length === 1 && first?.id !== undefined) span.setAttribute(MESSAGE_ID, String(first.id));
  const refused = enqueued.filter(({ outcome }) => outcome === 'duplicate' || outcome === 'throttled').length;
  if (refused > 0) span.setAttribute(DUPLICATES, refused);
}

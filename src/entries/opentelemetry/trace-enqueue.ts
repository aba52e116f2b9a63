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
  // One call enqueues jobs of one kind; their queues may differ.
  const kind = jobs[0]?.kind ?? '';
  const named = { [KIND]: kind, ...destinationOf(jobs) };
  const span = tracer.startSpan(`send ${kind}`, {
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
      // What an `enqueueFrom` has inserted is not known here, and nothing else says nothing.
      const count = enqueued?.filter(({ outcome }) => outcome === 'enqueued').length ?? 0;
      sent.note(named, count, performance.now() - startMs);
    },
    (error: unknown) => {
      fail(span, error);
      span.end();
      sent.note(named, 0, performance.now() - startMs, errorType(error));
      throw error;
    },
  );
}

function destinationOf(jobs: readonly JobToEnqueue[]): Record<string, string> {
  const queue = jobs[0]?.queue ?? '';
  return jobs.every((job) => job.queue === queue) ? { [DESTINATION]: queue } : {};
}

function noteResults(span: Span, enqueued: Enqueued): void {
  if (enqueued === undefined) return;
  const [first] = enqueued;
  if (enqueued.length === 1 && first?.id !== undefined) span.setAttribute(MESSAGE_ID, String(first.id));
  const refused = enqueued.filter(({ outcome }) => outcome === 'duplicate' || outcome === 'throttled').length;
  if (refused > 0) span.setAttribute(DUPLICATES, refused);
}

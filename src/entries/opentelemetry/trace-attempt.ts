import {
  type Attributes,
  type Context,
  context,
  createContextKey,
  type Link,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  trace,
} from '@opentelemetry/api';
import {
  type AttemptContext,
  type BatchAttemptContext,
  isCancel,
  isFail,
  isSnooze,
  isWait,
} from '../../index.ts';
import {
  ATTEMPT,
  BATCH_COUNT,
  BATCH_FAILED,
  DESTINATION,
  KIND,
  MAX_ATTEMPTS,
  MESSAGE_ID,
  OPERATION,
  OPERATION_TYPE,
  OUTCOME,
  SYSTEM,
  WAIT_MS,
} from './attributes.ts';
import { extract, extractBaggage } from './carrier.ts';
import { fail } from './span-error.ts';
import type { Tracing } from './tracing.ts';

type Job = AttemptContext['job'];

/** Under this key a context has the span of its attempt, whatever spans the app has begun in it. */
export const ATTEMPT_SPAN = /* @__PURE__ */ createContextKey('drizzle-queue attempt');

/** A handler that is told that its worker stops has this long to return. */
const GRACE_MS = 1_000;
/** After these the worker goes on waiting for the handler. */
const AWAITED: ReadonlySet<string> = new Set(['JobCancelledError', 'JobDeadlineError']);

/** Runs a handler in a span of its own. */
export async function traceAttempt(
  tracing: Tracing,
  { job, signal }: AttemptContext,
  next: () => Promise<unknown>,
): Promise<void> {
  const attributes = {
    [MESSAGE_ID]: String(job.id),
    [ATTEMPT]: job.attempt,
    [MAX_ATTEMPTS]: job.maxAttempts,
    [WAIT_MS]: waitMsOf(job),
  };
  await traceCall(tracing, [job], signal, attributes, next, noteOutcome);
}

/** Runs a batch handler in one span for all its jobs, linked to the enqueues of all of them. */
export async function traceBatch(
  tracing: Tracing,
  { jobs, signal }: BatchAttemptContext,
  next: () => Promise<unknown>,
): Promise<void> {
  const attributes = { [BATCH_COUNT]: jobs.length };
  await traceCall(
    tracing,
    jobs.map(({ job }) => job),
    signal,
    attributes,
    next,
    noteBatch,
  );
}

async function traceCall(
  { tracer, parent, propagate, baggage }: Tracing,
  jobs: readonly Job[],
  signal: AbortSignal,
  attributes: Attributes,
  next: () => Promise<unknown>,
  note: (span: Span, returned: unknown) => void,
): Promise<void> {
  const [first] = jobs;
  const senders = propagate ? linksOf(jobs) : [];
  const [sender] = senders;
  const continues = parent === 'parent' && jobs.length === 1 && sender !== undefined;
  // Not the context in which the worker was started, which would put the worker's whole life into one trace.
  let base: Context = continues ? trace.setSpanContext(ROOT_CONTEXT, sender.context) : ROOT_CONTEXT;
  const values = baggage && jobs.length === 1 ? extractBaggage(first?.metadata ?? {}) : undefined;
  if (values !== undefined) base = propagation.setBaggage(base, values);
  const span = tracer.startSpan(
    `process ${first?.kind}`,
    {
      kind: SpanKind.CONSUMER,
      links: continues ? [] : senders,
      attributes: {
        ...SYSTEM,
        [OPERATION]: 'process',
        [OPERATION_TYPE]: 'process',
        [DESTINATION]: first?.queue ?? '',
        [KIND]: first?.kind ?? '',
        ...attributes,
      },
    },
    base,
  );
  const forget = endWhenLeft(span, signal, OUTCOME);
  try {
    const within = trace.setSpan(base, span).setValue(ATTEMPT_SPAN, span);
    note(span, await context.with(within, next));
  } catch (error) {
    span.setAttribute(OUTCOME, isAbortedBy(signal, 'QueueError') ? 'interrupted' : 'failed');
    fail(span, error);
    throw error;
  } finally {
    forget();
    // Once it has ended this changes nothing.
    span.end();
  }
}

/** The spans that the jobs were enqueued in, each once. */
function linksOf(jobs: readonly Job[]): Link[] {
  const links = new Map<string, Link>();
  for (const { metadata } of jobs) {
    const sender = extract(metadata);
    if (sender !== undefined) links.set(sender.traceId + sender.spanId, { context: sender });
  }
  return [...links.values()];
}

/**
 * Ends the span when the worker no longer waits for the handler (a timeout, a lost job, a worker's stop).
 * Otherwise the span of a hanging handler would never be seen. The worker still waits for a handler that was
 * cancelled, or whose job has passed its deadline.
 */
export function endWhenLeft(span: Span, signal: AbortSignal, outcome: string): () => void {
  let timer: NodeJS.Timeout | undefined;
  const leave = () => {
    const { reason } = signal;
    span.addEvent('aborted', { reason: nameOf(reason) });
    if (AWAITED.has(nameOf(reason))) return;
    const stops = nameOf(reason) === 'QueueError';
    const end = () => {
      span.setAttribute(outcome, stops ? 'interrupted' : 'failed');
      fail(span, reason);
      span.end();
    };
    if (!stops) return end();
    timer = setTimeout(end, GRACE_MS);
    // A browser's timers are numbers.
    timer.unref?.();
  };
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave, { once: true });
  return () => {
    clearTimeout(timer);
    signal.removeEventListener('abort', leave);
  };
}

function isAbortedBy({ aborted, reason }: AbortSignal, name: string): boolean {
  return aborted && nameOf(reason) === name;
}

/** By name: a process may have two copies of the library. */
function nameOf(reason: unknown): string {
  return reason instanceof Error ? reason.name : 'unknown';
}

function noteOutcome(span: Span, returned: unknown): void {
  if (isFail(returned)) fail(span, returned.error);
  span.setAttribute(
    OUTCOME,
    isFail(returned)
      ? 'failed'
      : isSnooze(returned)
        ? 'snoozed'
        : isCancel(returned)
          ? 'cancelled'
          : isWait(returned)
            ? 'waiting'
            : 'completed',
  );
}

function noteBatch(span: Span, returned: unknown): void {
  const failed = Array.isArray(returned) ? returned.filter(isFail).length : 0;
  if (failed > 0) span.setAttribute(BATCH_FAILED, failed);
}

/** From due to claimed; a job that was claimed ahead begins a few milliseconds later. */
export function waitMsOf({ runAt, claimedAt }: Pick<Job, 'runAt' | 'claimedAt'>): number {
  return Math.max(0, claimedAt.getTime() - runAt.getTime());
}

import {
  type Baggage,
  baggageEntryMetadataFromString,
  createTraceState,
  isSpanContextValid,
  propagation,
  type SpanContext,
} from '@opentelemetry/api';
import { unstorableIn } from '../../internal.ts';

/** Where a job carries the trace that it was enqueued in, by the names of the W3C's headers. */
export type Carrier = Record<string, unknown>;

const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;
/** The W3C's bounds of what is passed on. */
const MAX_TRACESTATE = 512;
const MAX_BAGGAGE = 8_192;

/**
 * Writes the context of a span into a job's metadata. By these names whatever the app's own propagator is:
 * metadata outlive deploys, and other programs read them.
 */
export function inject(carrier: Carrier, span: SpanContext): void {
  if (!isSpanContextValid(span)) return;
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, '0');
  carrier.traceparent = `00-${span.traceId}-${span.spanId}-${flags}`;
  const state = span.traceState?.serialize();
  // What the caller has put there belongs to another trace.
  if (state && state.length <= MAX_TRACESTATE) carrier.tracestate = state;
  else delete carrier.tracestate;
}

/** Writes the app's own values; nothing where there are none, or too many to be passed on. */
export function injectBaggage(carrier: Carrier, baggage: Baggage | undefined): void {
  const text = (baggage?.getAllEntries() ?? [])
    .flatMap(([key, { value, metadata }]) => {
      const [name, encoded] = [encodedText(key), encodedText(value)];
      // A value that cannot be passed on must not fail the enqueue.
      if (name === undefined || encoded === undefined) return [];
      const more = metadata?.toString();
      return [more && unstorableIn(more) === undefined ? `${name}=${encoded};${more}` : `${name}=${encoded}`];
    })
    .join(',');
  if (text !== '' && text.length <= MAX_BAGGAGE) carrier.baggage = text;
}

/** The span that a job was enqueued in; `undefined` where its metadata have none, or something else. */
export function extract({ traceparent, tracestate }: Readonly<Carrier>): SpanContext | undefined {
  if (typeof traceparent !== 'string') return undefined;
  const [, traceId = '', spanId = '', flags = ''] = TRACEPARENT.exec(traceparent) ?? [];
  const span: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) || 0,
    isRemote: true,
    ...(typeof tracestate === 'string' && { traceState: createTraceState(tracestate) }),
  };
  return isSpanContextValid(span) ? span : undefined;
}

/** The app's own values that came with a job. */
export function extractBaggage({ baggage }: Readonly<Carrier>): Baggage | undefined {
  if (typeof baggage !== 'string' || baggage.length > MAX_BAGGAGE) return undefined;
  const entries = baggage.split(',').flatMap((text) => {
    const [pair = '', ...metadata] = text.split(';');
    const at = pair.indexOf('=');
    if (at < 1) return [];
    const [key, value] = [decoded(pair.slice(0, at)), decoded(pair.slice(at + 1))];
    if (key === undefined || value === undefined) return [];
    const entry =
      metadata.length === 0
        ? { value }
        : { value, metadata: baggageEntryMetadataFromString(metadata.join(';')) };
    return [[key, entry] as const];
  });
  return entries.length === 0 ? undefined : propagation.createBaggage(Object.fromEntries(entries));
}

/** `undefined` for a text with half of a surrogate pair, such as one that was cut in an emoji. */
function encodedText(text: string): string | undefined {
  try {
    return encodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.trim());
  } catch {
    return undefined;
  }
}

import { type Span, SpanStatusCode } from '@opentelemetry/api';
import { describeThrown } from '../../internal.ts';
import { ERROR_TYPE } from './attributes.ts';

/** Marks a span as failed. Of the error its class, message and stack, and never a query's parameters. */
export function fail(span: Span, error: unknown): void {
  const { name, message, stack } = describeThrown(error);
  span.setAttribute(ERROR_TYPE, name);
  span.recordException({ name, message, ...(stack !== undefined && { stack }) });
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

/** A few words that a metric may have as an attribute: an error's class. */
export function errorType(error: unknown): string {
  return describeThrown(error).name;
}

import type { Tracer } from '@opentelemetry/api';
import type { SentMetrics } from './sent-metrics.ts';

/** What the traced functions share. */
export interface Tracing {
  readonly tracer: Tracer;
  readonly propagate: boolean;
  readonly baggage: boolean;
  readonly parent: 'link' | 'parent';
  readonly sent: SentMetrics;
}

/** Traces and metrics by OpenTelemetry; its API (`@opentelemetry/api`) is a peer of this entry alone. */
export type { Figures, Vitals, WorkflowFigures } from './figures.ts';
export { type ObservedWorker, type ObserveOptions, observe } from './observe.ts';
export { type OtelAround, type OtelOptions, otel } from './otel.ts';
export { type OtelStepsOptions, otelSteps } from './otel-steps.ts';

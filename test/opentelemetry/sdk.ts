import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { until } from '../support/until.ts';

/** The real SDK with an exporter in memory, as the global one, for the tests of a file. */
export function useTracing(sampler?: Sampler) {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({
    spanProcessors: [new SimpleSpanProcessor(exporter)],
    ...(sampler && { sampler }),
  });
  beforeAll(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(provider);
  });
  beforeEach(() => exporter.reset());
  afterAll(async () => {
    await provider.shutdown();
    trace.disable();
    context.disable();
    propagation.disable();
  });
  return {
    /** All that have ended, in that order. */
    spans: (): readonly ReadableSpan[] => exporter.getFinishedSpans(),
    named: (name: string): readonly ReadableSpan[] =>
      exporter.getFinishedSpans().filter((span) => span.name === name),
    /** The first with this name, once it has ended. */
    ended: async (name: string): Promise<ReadableSpan> => {
      const find = () => exporter.getFinishedSpans().find((span) => span.name === name);
      return (await until(find)) as ReadableSpan; // `until` resolves with what is true
    },
  };
}

export function parentIdOf(span: ReadableSpan | undefined): string | undefined {
  return span?.parentSpanContext?.spanId;
}

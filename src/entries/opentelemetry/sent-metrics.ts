import type { Counter, Histogram, Meter } from '@opentelemetry/api';
import { ERROR_TYPE, OPERATION, OPERATION_TYPE, SYSTEM } from './attributes.ts';
import { currentInstruments } from './current-instruments.ts';

/** By OpenTelemetry's conventions, in seconds. */
export const OPERATION_BOUNDARIES = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];

interface Instruments {
  readonly sent: Counter;
  readonly duration: Histogram;
}

/** What enqueues are counted with. */
export class SentMetrics {
  readonly #instruments: () => Instruments;

  /** @param meter see {@link currentInstruments} */
  constructor(meter: Meter | undefined) {
    this.#instruments = currentInstruments(meter, (meter) => ({
      sent: meter.createCounter('messaging.client.sent.messages', {
        unit: '{message}',
        description: 'Jobs that were enqueued',
      }),
      duration: operationDuration(meter),
    }));
  }

  /** An enqueue has taken so long, and has failed with an error of this type. */
  noteDuration(attributes: Readonly<Record<string, string>>, durationMs: number, error?: string): void {
    const failed = error !== undefined && { [ERROR_TYPE]: error };
    const all = { ...SYSTEM, ...attributes, ...failed, ...operationOf('send') };
    this.#instruments().duration.record(durationMs / 1_000, all);
  }

  noteJobs(attributes: Readonly<Record<string, string>>, jobs: number): void {
    this.#instruments().sent.add(jobs, { ...SYSTEM, [OPERATION]: 'send', ...attributes });
  }
}

/** What the conventions require of each value of `messaging.client.operation.duration`. */
export function operationOf(name: 'send' | 'receive' | 'settle') {
  return { [OPERATION]: name, [OPERATION_TYPE]: name };
}

export function operationDuration(meter: Meter): Histogram {
  return meter.createHistogram('messaging.client.operation.duration', {
    unit: 's',
    description:
      'How long enqueues (send), claims that found jobs (receive) and the writing of outcomes (settle) took',
    advice: { explicitBucketBoundaries: OPERATION_BOUNDARIES },
  });
}

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

  note(attributes: Readonly<Record<string, string>>, jobs: number, durationMs: number, error?: string): void {
    const { sent, duration } = this.#instruments();
    const all = {
      ...SYSTEM,
      [OPERATION]: 'send',
      ...attributes,
      ...(error !== undefined && { [ERROR_TYPE]: error }),
    };
    duration.record(durationMs / 1_000, { ...all, ...operationOf('send') });
    if (jobs > 0) sent.add(jobs, all);
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

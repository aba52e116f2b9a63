import type { Histogram, Meter } from '@opentelemetry/api';
import type { ObservedStep, StepEnd } from '../../index.ts';
import { DESTINATION, KIND, STEP_KIND, STEP_OUTCOME, SYSTEM } from './attributes.ts';
import { currentInstruments } from './current-instruments.ts';
import { OPERATION_BOUNDARIES } from './sent-metrics.ts';

/** What steps are counted and timed with. No attribute has the name of a step, which may contain a key. */
export class StepMetrics {
  readonly #duration: () => Histogram;

  /** @param meter see {@link currentInstruments} */
  constructor(meter: Meter | undefined) {
    this.#duration = currentInstruments(meter, (meter) =>
      meter.createHistogram('drizzle_queue.step.duration', {
        unit: 's',
        description: 'How long steps ran in one run of their handler; of waits, until the job was parked',
        advice: { explicitBucketBoundaries: [...OPERATION_BOUNDARIES, 30, 60, 300] },
      }),
    );
  }

  note({ job, kind }: ObservedStep, outcome: StepEnd, durationMs: number): void {
    this.#duration().record(durationMs / 1_000, {
      ...SYSTEM,
      [DESTINATION]: job.queue,
      [KIND]: job.kind,
      [STEP_KIND]: kind,
      [STEP_OUTCOME]: outcome,
    });
  }
}

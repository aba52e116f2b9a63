import { type Histogram, type Meter, metrics } from '@opentelemetry/api';
import type { ObservedStep, StepEnd } from '../../index.ts';
import { DESTINATION, KIND, SCOPE, STEP_KIND, STEP_OUTCOME, SYSTEM } from './attributes.ts';
import { OPERATION_BOUNDARIES } from './sent-metrics.ts';

/** What steps are counted and timed with. No attribute has the name of a step, which may contain a key. */
export class StepMetrics {
  readonly #given: Meter | undefined;
  #provider: unknown;
  #duration: Histogram | undefined;

  /** @param meter without it the global provider's, even if that is registered later */
  constructor(meter: Meter | undefined) {
    this.#given = meter;
  }

  note({ job, kind }: ObservedStep, outcome: StepEnd, durationMs: number): void {
    this.#histogram.record(durationMs / 1_000, {
      ...SYSTEM,
      [DESTINATION]: job.queue,
      [KIND]: job.kind,
      [STEP_KIND]: kind,
      [STEP_OUTCOME]: outcome,
    });
  }

  /** Unlike tracers, meters of the global API stay what they were when they were asked for. */
  get #histogram(): Histogram {
    const provider = metrics.getMeterProvider();
    if (this.#duration !== undefined && (this.#given !== undefined || provider === this.#provider))
      return this.#duration;
    this.#provider = provider;
    this.#duration = (this.#given ?? provider.getMeter(SCOPE)).createHistogram(
      'drizzle_queue.step.duration',
      {
        unit: 's',
        description: 'How long steps ran in one run of their handler; of waits, until the job was parked',
        advice: { explicitBucketBoundaries: [...OPERATION_BOUNDARIES, 30, 60, 300] },
      },
    );
    return this.#duration;
  }
}

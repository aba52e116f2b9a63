import type { Outcome } from '../../job/outcome.ts';
import { isPromise } from '../base/is-promise.ts';
import type { Attempt } from '../run/attempt.ts';
import { executeJob } from '../run/execute-job.ts';
import type { Endings } from '../settle/endings.ts';
import type { Beginnings } from './beginnings.ts';
import type { Gate } from './gate.ts';
import type { Prefetch } from './prefetch.ts';

export interface ExecutionsOptions {
  readonly endings: Pick<Endings, 'conclude'>;
  readonly prefetch: Pick<Prefetch, 'note'>;
  readonly beginnings: Pick<Beginnings, 'noteSurvived'>;
  /** `undefined` where a job begins as soon as a slot is free. */
  readonly gate?: Gate | undefined;
  /** Called when a handler has ended. */
  readonly onEnd: (attempt: Attempt, outcome: Outcome) => void;
  /** Called after it, unless the handler has ended within `begin`. */
  readonly onChange: () => void;
}

/** The handlers of one queue that run. */
export class Executions {
  readonly #options: ExecutionsOptions;
  /** Two of them may be of one job: a lost one whose handler goes on, and a newer. */
  readonly running = new Set<Attempt>();

  constructor(options: ExecutionsOptions) {
    this.#options = options;
  }

  /** Calls the handler; answers whether it has ended, as one that waits for nothing does at once. */
  begin(attempt: Attempt): boolean {
    this.running.add(attempt);
    const startMs = performance.now();
    const outcome = executeJob(attempt);
    if (isPromise(outcome)) {
      void outcome.then((outcome) => {
        this.#end(attempt, outcome, startMs);
        this.#options.onChange();
      });
      return false;
    }
    this.#end(attempt, outcome, startMs);
    return true;
  }

  #end(attempt: Attempt, outcome: Outcome, startMs: number): void {
    const { endings, gate, prefetch, beginnings, onEnd } = this.#options;
    const durationMs = performance.now() - startMs;
    endings.conclude(attempt, outcome, durationMs);
    this.running.delete(attempt);
    gate?.end(attempt.job.kind);
    prefetch.note(durationMs);
    beginnings.noteSurvived(attempt);
    onEnd(attempt, outcome);
  }
}

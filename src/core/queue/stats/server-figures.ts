import type { FoundPassedOver } from '../../queries/operate/find-passed-over.ts';
import type { SilentWorker } from '../../queries/operate/find-silent-workers.ts';
import type { ServerVitals } from '../../queries/operate/inspect-vitals.ts';

/** What vitals read, beside what there is to do. */
export interface ServerFigures {
  readonly server: ServerVitals;
  readonly silent: readonly SilentWorker[];
  /** `undefined` when that took too long. */
  readonly passedOver: FoundPassedOver | undefined;
}

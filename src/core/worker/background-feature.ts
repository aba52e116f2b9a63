import type { FeatureTables } from '../sql/feature-tables.ts';
import type { BackgroundPart } from './base/background.ts';
import type { HostWorker } from './host-worker.ts';
import type { EndedAttempt } from './run/ended-attempt.ts';

/** A feature that works beside the jobs of a worker, on tables of its own. */
export interface BackgroundFeature {
  readonly tables: FeatureTables;
  /**
   * Called by each start, before anything is sent.
   * @throws what is wrong with what the app has given the feature
   */
  prepare?(): Promise<unknown>;
  /** What it does in a worker, which has prepared it. */
  forWorker(worker: HostWorker): BackgroundInWorker;
}

export interface BackgroundInWorker {
  readonly background: readonly BackgroundPart[];
  /** Workers were asked to look, or notifications may have been missed. */
  look?(): void;
  /** Does once what it would do in time, before a worker that waits for nothing claims. Never rejects. */
  lookOnce?(signal: AbortSignal): Promise<void>;
  /** An attempt has ended, and the database knows. */
  noteAttempt?(ended: EndedAttempt): void;
  /** Writes what it has kept, since the worker stops. Never rejects. */
  write?(): Promise<void>;
}

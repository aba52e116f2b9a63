import type { Driver } from './combinations.ts';
import type { Place } from './program/open-driver.ts';

/** What a process of the matrix is told. */
export interface Request extends Place {
  readonly driver: Driver;
  /** How many workers run on the client at a time. */
  readonly workers: number;
}

/** What it says of each behaviour. */
export type Report =
  | { readonly name: string; readonly durationMs: number }
  /** What the driver lacks. */
  | { readonly name: string; readonly skipped: string }
  | { readonly name: string; readonly error: string };

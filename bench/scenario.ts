import type { Options } from './options.ts';

/** Everything that a scenario has measured. */
export interface ScenarioResult {
  readonly scenario: string;
  /** The figures that it did not reach, in words. */
  readonly missed?: readonly string[];
}

/** Measures, prints tables for people, and answers everything that was measured. */
export type Scenario = (options: Options) => Promise<ScenarioResult>;

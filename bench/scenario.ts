import type { Report } from './harness/report.ts';
import type { Options } from './options.ts';

/** Everything that a scenario has measured. */
export interface ScenarioResult {
  readonly scenario: string;
  /** The figures that it did not reach, in words; undefined where there are none to reach. */
  readonly missed?: readonly string[];
  /** For people; what is in it, is in the rest of the result as well. */
  readonly report?: Report;
}

/** Measures, prints tables for people, and answers everything that was measured. */
export type Scenario = (options: Options) => Promise<ScenarioResult>;

/** Carries a scenario out. One that is to be quick has no figures to reach. */
export async function carryOut(scenario: Scenario, options: Options): Promise<ScenarioResult> {
  const { missed, ...result } = await scenario(options);
  return options.quick || missed === undefined ? result : { ...result, missed };
}

/** Measures, prints tables for people, and answers everything that was measured. */
export type Scenario = (options: readonly string[]) => Promise<unknown>;

import { parseArgs } from 'node:util';

/** What the command line says about how to measure. */
export interface Options {
  /** Small and short, only to see that it works: the figures mean nothing and are not checked. */
  readonly quick: boolean;
  /** End with exit code 1 when a figure is missed. */
  readonly check: boolean;
  /** Write the scenario's section and charts into `docs/benchmarks.md`. */
  readonly write: boolean;
  /** How often everything is measured. @default the scenario's */
  readonly runs: number | undefined;
  /** How many jobs one measurement takes. @default the scenario's */
  readonly jobs: number | undefined;
  /** Measure only systems whose name contains one of these texts. @default all */
  readonly only: readonly string[] | undefined;
}

/** @throws Error when an option is unknown or not a number where one is needed */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      runs: { type: 'string' },
      jobs: { type: 'string' },
      only: { type: 'string' },
    },
  });
  return {
    quick: values.quick,
    check: values.check && !values.quick,
    write: values.write && !values.quick,
    runs: count('runs', values.runs),
    jobs: count('jobs', values.jobs),
    only: values.only?.split(','),
  };
}

function count(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`--${name} takes a whole number above 0, got ${text}`);
  return value;
}

/** Carries a scenario out, prints its tables, and as the last line one JSON object with everything that it has measured. */

import { type Options, parseOptions } from './options.ts';
import { writeSection } from './page/write-page.ts';
import { carryOut, type Scenario } from './scenario.ts';
import { scenarios } from './scenarios.ts';

const known: Readonly<Record<string, () => Promise<Scenario>>> = {
  all: async () => (await import('./all.ts')).all,
  ...scenarios,
  designs: async () => (await import('./designs/scenario.ts')).designs,
  workers: async () => (await import('./scenarios/workers/scenario.ts')).workers,
  recovery: async () => (await import('./scenarios/workers/recovery.ts')).recovery,
};

const [name = '', ...rest] = process.argv.slice(2);
const load = Object.hasOwn(known, name) ? known[name] : undefined;
const options = readOptions();
if (load === undefined || options === undefined) {
  console.error(`Usage: npm run bench -- SCENARIO [--quick] [--check] [--write] [--runs=N] [--jobs=N] [--only=TEXT,…]

SCENARIO is one of: ${Object.keys(known).join(', ')}
--quick   small and short, to see that it works: its figures mean nothing
--check   end with exit code 1 when a figure is missed
--write   put its section and charts into docs/benchmarks.md; 'all' writes the whole page anyway
--runs    how often everything is measured, in turns; the medians are shown
--jobs    how many jobs each measurement takes
--only    measure only the systems whose name contains one of these texts`);
  process.exitCode = 2;
} else {
  const scenario = await load();
  const { report, ...result } = await carryOut(scenario, options);
  if (options.write && report !== undefined)
    console.log(`Written: ${await writeSection({ report, ...result }, Object.keys(scenarios))}`);
  console.log(JSON.stringify(result));
  if (options.check && result.missed !== undefined && result.missed.length > 0) {
    console.error(`Missed:\n${result.missed.map((figure) => `- ${figure}`).join('\n')}`);
    process.exitCode = 1;
  }
}

function readOptions(): Options | undefined {
  try {
    return parseOptions(rest);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return undefined;
  }
}

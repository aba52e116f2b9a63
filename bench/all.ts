import { writePage } from './page/write-page.ts';
import { carryOut, type Scenario, type ScenarioResult } from './scenario.ts';
import { scenarios } from './scenarios.ts';

/** Every scenario, one after the other. Writes `docs/benchmarks.md` and its charts, unless it is to be quick. */
export const all: Scenario = async (options) => {
  const startMs = performance.now();
  const results: ScenarioResult[] = [];
  for (const [name, load] of Object.entries(scenarios)) {
    const scenarioStartMs = performance.now();
    const scenario = await load();
    results.push(await carryOut(scenario, options));
    console.error(`${name}: ${Math.round((performance.now() - scenarioStartMs) / 1_000)} s`);
  }
  if (!options.quick) console.log(`Written: ${await writePage(results)}`);
  const seconds = Math.round((performance.now() - startMs) / 1_000);
  console.log(`${seconds} s\n`);
  return {
    scenario: 'all',
    seconds,
    missed: results.flatMap(({ missed = [] }) => missed),
    results: results.map(({ report: _, ...result }) => result),
  };
};

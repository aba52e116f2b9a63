/** Carries a scenario out, prints its tables, and as the last line one JSON object with everything that it has measured. */
import { type Options, parseOptions } from './options.ts';
import type { Scenario } from './scenario.ts';

/** Loaded when asked for: what one needs, another need not load. */
const scenarios: Readonly<Record<string, () => Promise<Scenario>>> = {
  designs: async () => (await import('./designs/scenario.ts')).designs,
  drain: async () => (await import('./scenarios/drain.ts')).drain,
  pinned: async () => (await import('./scenarios/pinned.ts')).pinned,
  scheduled: async () => (await import('./scenarios/scheduled/scenario.ts')).scheduled,
  enqueue: async () => (await import('./scenarios/enqueue/scenario.ts')).enqueue,
  latency: async () => (await import('./scenarios/latency/scenario.ts')).latency,
  concurrency: async () => (await import('./scenarios/concurrency.ts')).concurrency,
  idle: async () => (await import('./scenarios/idle.ts')).idle,
  mixed: async () => (await import('./scenarios/mixed.ts')).mixed,
};

const [name = '', ...rest] = process.argv.slice(2);
const load = Object.hasOwn(scenarios, name) ? scenarios[name] : undefined;
const options = readOptions();
if (load === undefined || options === undefined) {
  console.error(`Usage: npm run bench -- SCENARIO [--quick] [--check] [--runs=N] [--jobs=N] [--only=TEXT,…]
SCENARIO is one of: ${Object.keys(scenarios).join(', ')}`);
  process.exitCode = 2;
} else {
  const scenario = await load();
  const { report: _, ...result } = await scenario(options);
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

/**
 * Runs one scenario: `npm run bench -- SCENARIO`. A scenario prints its table and, as its last line, one JSON object with
 * everything that it has measured.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Scenario } from './scenario.ts';

/** Loaded when asked for: what one needs, another need not have installed. */
const scenarios: Readonly<Record<string, () => Promise<Scenario>>> = {
  designs: async () => (await import('./designs/scenario.ts')).designs,
};

const directory = fileURLToPath(new URL('.', import.meta.url));

const [name = '', ...options] = process.argv.slice(2);
const load = Object.hasOwn(scenarios, name) ? scenarios[name] : undefined;
if (load === undefined) {
  console.error(
    `Usage: npm run bench -- SCENARIO, where SCENARIO is one of: ${Object.keys(scenarios).join(', ')}`,
  );
  process.exitCode = 2;
} else {
  if (!existsSync(`${directory}node_modules`)) {
    console.error('Installing what the benches need, once …');
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], {
      cwd: directory,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  }
  const scenario = await load();
  console.log(JSON.stringify(await scenario(options)));
}

/**
 * Runs the library on a Citus cluster:
 *
 *     CITUS_URL=postgres://coordinator/postgres CITUS_NODES=postgres://node1/postgres,… npm run test:citus
 *
 * First each of its statements, once, with a table of what the cluster says; then the suites. `npm run test:citus --
 * statements drivers queue worker` runs those that are named. Each test file gets a database of its own on all nodes,
 * distributed by the SQL of docs/scaling.md, and removes it.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type CitusCluster, citusCluster } from '../support/citus.ts';
import { tryStatements } from './try-statements.ts';

const SUITES: Readonly<Record<string, string>> = {
  drivers: 'test/integration/drivers.test.ts',
  queue: 'test/queue/',
  worker: 'test/worker/',
};
const STATEMENTS = 'statements';

const cluster = citusCluster();
const named = process.argv.slice(2);
const slices = named.length > 0 ? named : [STATEMENTS, ...Object.keys(SUITES)];
if (cluster === undefined) {
  console.log('Not run: CITUS_URL names no cluster. What was last run on one stands in docs/scaling.md.');
} else {
  for (const slice of slices) {
    if (!(await run(slice, cluster))) process.exitCode = 1;
  }
}

/** Returns whether all of it is as it should be. */
async function run(slice: string, on: CitusCluster): Promise<boolean> {
  if (slice === STATEMENTS) return await showStatements(on);
  const suite = SUITES[slice];
  if (suite === undefined) {
    console.error(`There is no slice ${slice}: ${[STATEMENTS, ...Object.keys(SUITES)].join(', ')}`);
    return false;
  }
  const tests = spawn('node_modules/.bin/vitest', ['run', '--config', 'test/citus/vitest.config.ts', suite], {
    stdio: 'inherit',
    env: { ...process.env, DATABASE_URL: on.url, CITUS_SLICE: suite },
  });
  const [code] = await once(tests, 'exit');
  return code === 0;
}

/** Prints which statements the cluster takes. */
async function showStatements(on: CitusCluster): Promise<boolean> {
  const tried = await tryStatements(on);
  const refused = tried.filter(({ refusal }) => refusal !== undefined);
  for (const { name, refusal } of tried)
    console.log(`${refusal === undefined ? 'works   ' : 'refused '} ${name}`);
  for (const { name, refusal } of refused) console.log(`\n${name}:\n  ${refusal}`);
  console.log(`\n${tried.length} statements, of which ${refused.length} are refused`);
  return refused.length === 0;
}

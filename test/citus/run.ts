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
import { type Tried, tryStatements } from './try-statements.ts';

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

/** Prints which statements the cluster takes, of those that it is sent and of those that it is not. */
async function showStatements(on: CitusCluster): Promise<boolean> {
  const tried = await tryStatements(on);
  const parts = [
    { title: 'sent to a cluster', of: tried.filter(({ instead }) => instead === undefined) },
    { title: 'never sent there', of: tried.filter(({ instead }) => instead !== undefined) },
  ];
  for (const { title, of } of parts) {
    console.log(`\nStatements that are ${title}:\n`);
    for (const { name, instead, refusal } of of) {
      console.log(`${refusal === undefined ? 'works   ' : 'refused '} ${name}`);
      if (refusal !== undefined) console.log(`           ${refusal.split('\n', 1)}`);
      if (instead !== undefined) console.log(`           instead: ${instead}`);
    }
  }
  const refusedOf = (of: readonly Tried[]) => of.filter(({ refusal }) => refusal !== undefined).length;
  const [sent = [], kept = []] = parts.map(({ of }) => of);
  console.log(
    `\n${sent.length} statements are sent, of which ${refusedOf(sent)} are refused; ` +
      `of ${kept.length} that are not sent ${refusedOf(kept)} are`,
  );
  return refusedOf(sent) === 0;
}

/**
 * Runs what the library shows on all drivers, and the tests of the queue and the workers, on a Citus cluster:
 * `CITUS_URL=postgres://coordinator/postgres CITUS_NODES=postgres://node1/postgres,… npm run test:citus`.
 *
 * Each test file gets a database of its own on all nodes, distributed by the SQL of docs/scaling.md, and removes it.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { citusCluster } from '../support/citus.ts';

const SUITES = ['test/integration/drivers.test.ts', 'test/queue/', 'test/worker/'];

const cluster = citusCluster();
if (cluster === undefined) {
  console.log('Not run: CITUS_URL names no cluster. What was last run on one stands in docs/scaling.md.');
} else {
  const tests = spawn('node_modules/.bin/vitest', ['run', '--exclude', '**/*.slow.test.ts', ...SUITES], {
    stdio: 'inherit',
    env: { ...process.env, DATABASE_URL: cluster.url },
  });
  const [code] = await once(tests, 'exit');
  process.exitCode = code ?? 1;
}

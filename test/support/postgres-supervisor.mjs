/**
 * Runs a PostgreSQL server for another process, and removes every trace of it when that process ends, however it does:
 * the channel between the two closes even when the other one is killed. Started by `supervisor.ts` only.
 *
 * Plain JavaScript, so that it runs without a loader.
 */
import { PostgresCluster } from './postgres-cluster.mjs';

/**
 * What the other process may ask for; each answer has the request's id.
 *
 * @typedef {{ id: number } & (
 *   | { method: 'create', user: import('./server-user.ts').ServerUser | undefined }
 *   | { method: 'start', options: import('./postgres-cluster.mjs').ClusterOptions }
 *   | { method: 'crash' }
 *   | { method: 'restart' }
 * )} Request
 *
 * @typedef {{ id: number, result?: unknown, error?: string }} Answer
 */

/** @type {PostgresCluster | undefined} */
let cluster;

/** The request in progress: they are carried out one after the other. */
let current = Promise.resolve();

let ending = false;

/** Stops the server, removes its files and exits. */
async function end() {
  if (ending) return;
  ending = true;
  let exitCode = 0;
  try {
    // This makes a request in progress fail, except one that is just creating the folder, hence the second time.
    await cluster?.remove();
    await current;
    await cluster?.remove();
  } catch {
    exitCode = 1;
  }
  process.exit(exitCode);
}

/** @param {Request} request */
async function carryOut(request) {
  switch (request.method) {
    case 'create':
      cluster = await PostgresCluster.create(request.user);
      return cluster.directory;
    case 'start':
      return cluster?.start(request.options);
    case 'crash':
      return cluster?.crash();
    case 'restart':
      return cluster?.restart();
  }
}

/** @param {Answer} answer */
function reply(answer) {
  // The other process may end at any moment; then there is nobody to tell about it.
  if (process.connected) process.send?.(answer, undefined, undefined, () => {});
}

process.on('message', (/** @type {Request} */ request) => {
  current = current.then(async () => {
    if (ending) return;
    try {
      reply({ id: request.id, result: await carryOut(request) });
    } catch (error) {
      reply({ id: request.id, error: error instanceof Error ? error.message : String(error) });
    }
  });
});

process.on('disconnect', end);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, end);
process.on('uncaughtException', end);
// The other process may have ended before the listener was there.
if (!process.connected) end();

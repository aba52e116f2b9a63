import { shown } from '../job/shown.ts';
import type { WorkerHealth } from './health.ts';

const METHODS = ['GET', 'HEAD'];

/**
 * A Fetch handler for probes, under any path: `…/live` answers 200 while the worker is live and `…/ready`
 * while it is ready, otherwise 503; both with the worker's health as JSON. It asks the database nothing, so
 * `/live` goes on answering 200 while that is away, and an outage restarts no process.
 *
 * ```ts
 * serve({ fetch: healthHandler(worker), port: 8080 });
 * ```
 *
 * @throws TypeError when it is given no worker
 */
export function healthHandler(worker: { health(): WorkerHealth }): (request: Request) => Response {
  if (typeof worker?.health !== 'function') {
    throw new TypeError(`healthHandler takes what createWorker() returns; got ${shown(worker)}`);
  }
  return ({ method, url }) => {
    const probe = /\/(live|ready)\/?$/.exec(new URL(url).pathname)?.[1];
    if (probe === undefined) return new Response('Not found. Use /live or /ready\n', { status: 404 });
    if (!METHODS.includes(method)) {
      return new Response(null, { status: 405, headers: { allow: METHODS.join(', ') } });
    }
    const health = worker.health();
    const isWell = probe === 'live' ? health.live : health.ready;
    return new Response(method === 'HEAD' ? null : `${JSON.stringify(health)}\n`, {
      status: isWell ? 200 : 503,
      headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
    });
  };
}

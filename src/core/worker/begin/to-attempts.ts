import type { ClaimedJob } from '../../queries/claim/claim-jobs.ts';
import { Attempt, type AttemptEnvironment } from '../run/attempt.ts';
import type { Handler } from '../run/handler.ts';

/** The attempts of claimed jobs, in their order. @throws TypeError for a kind that no claim asks for */
export function toAttempts(
  jobs: readonly ClaimedJob[],
  handlers: ReadonlyMap<string, Handler>,
  environment: AttemptEnvironment,
): Attempt[] {
  return jobs.map((job) => {
    const handler = handlers.get(job.kind);
    if (handler === undefined) throw new TypeError(`No handler for a claimed job of kind '${job.kind}'`);
    return new Attempt(job, handler, environment);
  });
}

import type { Handler, JobDefinition } from '../../index.ts';
import { shown } from '../../internal.ts';
import type { QueueConfig } from '../config/define-config.ts';
import { Failure } from './failure.ts';
import type { Project } from './project/open-project.ts';

/** The config of an app that has one. @throws Failure where there is none, naming what needs it */
export function configOf({ config, source }: Project, what: string): QueueConfig {
  if (config !== undefined) return config;
  throw new Failure(
    `${what} needs a queue.config.ts, but the database was found by ${source}. ` +
      '`npx drizzle-queue init` writes one where the app exports its db; ' +
      'in NestJS run jobs by the worker of your app instead',
  );
}

export async function handlersOf({ handlers }: QueueConfig): Promise<readonly Handler[]> {
  const found: unknown = typeof handlers === 'function' ? await handlers() : (handlers ?? []);
  if (!Array.isArray(found))
    throw new Failure('The handlers of queue.config.ts must be an array, or a function that returns one');
  for (const [at, handler] of found.entries()) {
    if (isDefinition(handler?.job)) continue;
    throw new Failure(
      `handlers[${at}] of queue.config.ts must be what handle() or handleBatch() returns; ` +
        `got ${shown(handler)}`,
    );
  }
  return found;
}

/**
 * The definitions that the config names, and those of its handlers; each kind once.
 *
 * @throws Failure for what is not one, such as what a cycle of imports leaves `undefined`
 */
export async function definitionsOf(config: QueueConfig): Promise<ReadonlyMap<string, JobDefinition>> {
  const handled = (await handlersOf(config)).map(({ job }) => job);
  const jobs = config.jobs ?? [];
  for (const [at, job] of jobs.entries()) {
    if (isDefinition(job)) continue;
    throw new Failure(`jobs[${at}] of queue.config.ts must be what defineJob() returns; got ${shown(job)}`);
  }
  return new Map([...handled, ...jobs].map((job) => [job.kind, job]));
}

/** It may come from another copy of this package, so its class says nothing. */
function isDefinition(value: unknown): boolean {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, 'kind') === 'string';
}

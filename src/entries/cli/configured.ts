import type { Handler, JobDefinition } from '../../index.ts';
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
  if (Array.isArray(found)) return found;
  throw new Failure('The handlers of queue.config.ts must be an array, or a function that returns one');
}

/** The definitions that the config names, and those of its handlers; each kind once. */
export async function definitionsOf(config: QueueConfig): Promise<ReadonlyMap<string, JobDefinition>> {
  const handled = (await handlersOf(config)).map(({ job }) => job);
  return new Map([...handled, ...(config.jobs ?? [])].map((job) => [job.kind, job]));
}

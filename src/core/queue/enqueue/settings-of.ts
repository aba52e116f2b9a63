import type { EnqueueSettings } from './enqueue-around.ts';

const settings = new WeakMap<object, EnqueueSettings>();

/** Remembers what a queue enqueues with, for what enqueues in its name. */
export function rememberSettings(queue: object, given: EnqueueSettings): void {
  settings.set(queue, given);
}

/** @throws TypeError unless `createQueue` of this copy of the package has made it */
export function settingsOf(caller: string, queue: object): EnqueueSettings {
  const found = settings.get(Object(queue));
  if (found !== undefined) return found;
  throw new TypeError(
    `${caller}: queue must be what createQueue() of the same copy of drizzle-queue returns: import both ` +
      'as ESM, or both as CommonJS',
  );
}

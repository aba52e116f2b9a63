import type { Crew } from '../../queries/operate/find-crews.ts';

/** How many workers serve a queue, and a kind in it; those that do not say which kinds serve all. */
export function workersOf(crews: readonly Crew[], queue: string, kind?: string): number {
  return crews
    .filter((crew) => crew.queues.includes(queue))
    .filter((crew) => kind === undefined || (crew.kinds?.includes(kind) ?? true))
    .reduce((sum, { workers }) => sum + workers, 0);
}

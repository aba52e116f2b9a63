import type { Crew } from '../../queries/operate/find-crews.ts';

/** How many workers serve a queue, and a kind in it; those that do not say which kinds serve all. */
export function workersOf(crews: readonly Crew[], queue: string, kind?: string): number {
  return crews
    .filter((crew) => crew.queues.includes(queue))
    .filter((crew) => kind === undefined || (crew.kinds?.includes(kind) ?? true))
    .reduce((sum, { workers }) => sum + workers, 0);
}

/** The kinds that workers of a queue have handlers for; `undefined` where one of them does not say. */
export function kindsServed(crews: readonly Crew[], queue: string): string[] | undefined {
  const kinds = new Set<string>();
  for (const crew of crews) {
    if (!crew.queues.includes(queue)) continue;
    if (crew.kinds === undefined) return undefined;
    for (const kind of crew.kinds) kinds.add(kind);
  }
  return [...kinds];
}

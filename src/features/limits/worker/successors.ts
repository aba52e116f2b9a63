/** In a notification, before the ids of the workers that are meant. */
const FREE = '\u0002';

/** What a notification says to workers for which slots are free. */
export function successorsPayload(workerIds: readonly number[]): string {
  return `${FREE}${workerIds.join(',')}`;
}

/** The ids of the workers to which a notification says so; none for any other. */
export function successorsIn(payload: string): number[] {
  return payload.startsWith(FREE) ? payload.slice(FREE.length).split(',').map(Number) : [];
}

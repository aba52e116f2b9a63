import { inHalves, isAboutAccess, isAboutTheServer } from '../../internal.ts';

/** Who is told what becomes of many jobs, as it goes. */
export interface Telling<T> {
  /** What a statement came to, once it was done. */
  note(done: T): void;
  /** A job that the database refuses to change. */
  refused(id: number, error: unknown): void;
}

/**
 * Changes jobs by one statement for many. Where the database refuses one of them, as a trigger may, that one
 * is left and the others are changed.
 *
 * @throws what is about the server or the rights, since it would refuse all of them
 */
export async function leaveRefused(
  ids: readonly number[],
  write: (ids: readonly number[]) => Promise<void>,
  refuse: Telling<unknown>['refused'],
): Promise<void> {
  const mayBeOfRow = (error: unknown) => !isAboutTheServer(error) && !isAboutAccess(error);
  await inHalves(ids, { write, refuse, mayBeOfRow });
}

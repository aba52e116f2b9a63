import { halves, isAboutAccess, isAboutLocks, isAboutTheServer, isCancelled } from '../../internal.ts';

/** Hears of the progress of a change of many jobs. */
export interface Telling<T> {
  /** What a statement came to, once it was done. */
  note(done: T): void;
  /** A job that the database refuses to change. */
  refused(id: number, error: unknown): void;
  /**
   * Asked between two tries.
   *
   * @param behind the last id that is done with; `undefined`: none is
   */
  mayGoOn(behind: number | undefined): boolean;
}

/**
 * Changes jobs by one statement for many. Where the database refuses one of them, as a trigger may, that one
 * is left and the others are changed. It goes in order: all jobs up to some id are done with before the next.
 *
 * @throws what is about the server, the rights or a lock, and a job that takes too long by itself
 */
export async function leaveRefused(
  ids: readonly number[],
  write: (ids: readonly number[]) => Promise<void>,
  { refused, mayGoOn }: Pick<Telling<unknown>, 'refused' | 'mayGoOn'>,
): Promise<void> {
  const batches = [ids];
  let behind: number | undefined;
  for (let batch = batches.shift(); batch?.length && mayGoOn(behind); batch = batches.shift()) {
    try {
      await write(batch);
    } catch (error) {
      const isAlone = batch.length === 1;
      if (!mayBeOfJob(error) || (isAlone && isCancelled(error))) throw error;
      if (!isAlone) {
        batches.unshift(...halves(batch));
        continue;
      }
      for (const id of batch) refused(id, error);
    }
    behind = batch.at(-1);
  }
}

function mayBeOfJob(error: unknown): boolean {
  return !isAboutTheServer(error) && !isAboutAccess(error) && !isAboutLocks(error);
}

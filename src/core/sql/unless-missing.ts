import { MissingMigrationError } from '../../errors.ts';

/** What was read, or `undefined` while its table is missing: for what is told without it. */
export async function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof MissingMigrationError) return undefined;
    throw error;
  }
}

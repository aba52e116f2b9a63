import { isAboutTheServer } from './refusal.ts';

/** How {@link inHalves} writes. */
export interface Halving<T> {
  readonly write: (rows: readonly T[]) => Promise<void>;
  /** Called with a row that is refused by itself. */
  readonly refuse: (row: T, error: unknown) => void;
  /** Whether an error may lie in a row. @default it is not about the server */
  readonly mayBeOfRow?: (error: unknown) => boolean;
}

/**
 * Writes rows. A batch that is refused for what may be in it is halved, until the bad row is alone. The first
 * come first: with one bad row among many, the good ones are written soonest in this order.
 *
 * @throws what does not lie in a row
 */
export async function inHalves<T>(
  rows: readonly T[],
  { write, refuse, mayBeOfRow = (error) => !isAboutTheServer(error) }: Halving<T>,
): Promise<void> {
  const batches = rows.length === 0 ? [] : [rows];
  for (const batch of batches) {
    try {
      await write(batch);
    } catch (error) {
      if (!mayBeOfRow(error)) throw error;
      const [only] = batch;
      if (only !== undefined && batch.length === 1) refuse(only, error);
      else batches.push(...halves(batch));
    }
  }
}

/** The two parts of a batch that was refused. */
export function halves<T>(batch: readonly T[]): [readonly T[], readonly T[]] {
  const middle = batch.length >> 1;
  return [batch.slice(0, middle), batch.slice(middle)];
}

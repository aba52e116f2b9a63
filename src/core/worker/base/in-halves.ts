import { isAboutTheServer } from './refusal.ts';

/** How {@link inHalves} writes. */
export interface Halving<T> {
  /** Writes rows by one statement. */
  readonly write: (rows: readonly T[]) => Promise<void>;
  /** Called with a row that is refused by itself. */
  readonly refuse: (row: T, error: unknown) => void;
  /** Whether an error may lie in a row. @default it is not about the server */
  readonly mayBeOfRow?: (error: unknown) => boolean;
}

/**
 * Writes batches of rows, one after the other. One that is refused for what may be in it is halved, until the
 * bad row is alone. The first come first: with one bad row among many, the good ones are written soonest in
 * this order.
 *
 * @param batches more may be added meanwhile
 * @throws what does not lie in a row
 */
export async function inHalves<T>(
  batches: (readonly T[])[],
  { write, refuse, mayBeOfRow = (error) => !isAboutTheServer(error) }: Halving<T>,
): Promise<void> {
  for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
    const [first] = batch;
    if (first === undefined) continue;
    try {
      await write(batch);
    } catch (error) {
      if (!mayBeOfRow(error)) throw error;
      if (batch.length === 1) refuse(first, error);
      else batches.push(...halves(batch));
    }
  }
}

export function halves<T>(batch: readonly T[]): [readonly T[], readonly T[]] {
  const middle = batch.length >> 1;
  return [batch.slice(0, middle), batch.slice(middle)];
}

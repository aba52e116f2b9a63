import { atFaultPoints, type FaultPoint } from '../../src/core/sql/fault-point.ts';

/**
 * Runs an operation of the library, with something in between where it passes these fault points.
 *
 * @param saw is told which fault points were passed
 * @param giveUp what ends an operation that repeats whatever fails, when what came in between has failed
 */
export async function interrupted<T>(
  run: () => Promise<T>,
  between: Partial<Record<FaultPoint, () => Promise<void>>>,
  saw: (event: string) => void,
  giveUp?: AbortController,
): Promise<T> {
  const failures: unknown[] = [];
  const pass = async (point: FaultPoint) => {
    const act = between[point];
    if (act === undefined) return;
    // What comes in between is not interrupted in its turn.
    atFaultPoints();
    saw(`in between: ${point}`);
    try {
      await act();
    } catch (error) {
      if (!(error instanceof LostAnswer)) {
        failures.push(error);
        giveUp?.abort();
      }
      throw error;
    } finally {
      atFaultPoints(pass);
    }
  };
  atFaultPoints(pass);
  const answer = run().finally(() => atFaultPoints());
  await answer.catch(() => undefined);
  // Whatever the operation has made of it.
  if (failures.length > 0) throw failures[0];
  return await answer;
}

/** What a walk throws on purpose, as opposed to everything else that fails in between. */
export class LostAnswer extends Error {
  override name = 'LostAnswer';
}

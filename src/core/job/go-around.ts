import { QueueError } from '../../errors.ts';

/** Something that runs inside a function of `Around`. */
export interface SurroundedStep<TArgument, TAnswer> {
  /** What the function is called in errors. */
  readonly name: string;
  readonly around: (argument: TArgument, next: () => Promise<TAnswer>) => unknown;
  readonly argument: TArgument;
  readonly step: () => Promise<TAnswer>;
  /** Told when the function throws while the step is still under way; without it the step is waited for. */
  readonly onLeft?: (error: unknown) => void;
}

/**
 * Runs a step inside a function of the app's, and returns what the step does.
 *
 * @throws what the function throws, or else the step
 * @throws QueueError when the function does not call `next`, or twice, however it takes the refusal
 */
export async function goAround<TArgument, TAnswer>(
  surrounded: SurroundedStep<TArgument, TAnswer>,
): Promise<TAnswer> {
  const { name, around, argument, step, onLeft } = surrounded;
  let inner: Promise<TAnswer> | undefined;
  let underWay = false;
  let over = false;
  let twice: QueueError | undefined;
  const next = heard(async (): Promise<TAnswer> => {
    if (inner !== undefined) {
      twice = calledTwice(name);
      throw twice;
    }
    if (over) throw new QueueError(`${name} called next() after it had ended`);
    underWay = true;
    inner = step().finally(() => {
      underWay = false;
    });
    return await inner;
  });
  try {
    await around(argument, next);
  } catch (error) {
    if (onLeft === undefined) await inner?.catch(() => undefined);
    else if (underWay) onLeft(error);
    throw error;
  } finally {
    over = true;
  }
  if (inner === undefined) throw new QueueError(`${name} did not call next()`);
  const done = await inner;
  if (twice !== undefined) throw twice;
  return done;
}

/** `next`, whose rejection is passed on by other ways: one that nothing awaits would end the process. */
export function heard<T>(next: () => Promise<T>): () => Promise<T> {
  return () => {
    const answer = next();
    answer.catch(() => undefined);
    return answer;
  };
}

export function calledTwice(name: string): QueueError {
  return new QueueError(`${name} called next() twice`);
}

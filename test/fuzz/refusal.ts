import { inspect } from 'node:util';
import { QueueError } from 'drizzle-queue';
import fc from 'fast-check';
import { sqlStateOf } from '../../src/queries/executor.ts';
import { Trap } from './hostile.ts';

/** How a message of ours about an argument begins: it says who is meant. */
const OURS =
  /^(enqueue|enqueueMany|enqueueFrom|find|list|cancel|redrive|defineJob|createQueue|createQueueTables|createWorker|drain|runNext|snooze|exponentialBackoff|fixedBackoff|handle|handlers|lockRows|popRows|holdRows|drizzle-queue)\b/;

/** Whether a hostile call was accepted, or refused by an error that says what is wrong: ours, Drizzle's, or the database's. */
export async function attempt(call: () => unknown): Promise<'accepted' | 'refused'> {
  try {
    await call();
    return 'accepted';
  } catch (error) {
    if (isRefusal(error)) return 'refused';
    throw new Error(`An error that says nothing: ${inspect(error)}`, { cause: error });
  }
}

function isRefusal(error: unknown): boolean {
  if (error instanceof Trap || error instanceof QueueError || sqlStateOf(error) !== undefined) return true;
  if (!(error instanceof Error)) return false;
  if (error instanceof TypeError || error instanceof RangeError)
    return OURS.test(error.message) || isDrizzles(error);
  return isDrizzles(error) || error.message.startsWith('Failed query:');
}

/** Thrown by Drizzle itself, as for a column that is none: told by the first frame that is in a file. */
function isDrizzles({ stack = '' }: Error): boolean {
  const frame = stack.split('\n').find((line) => /^\s+at .*\//.test(line)) ?? '';
  return frame.includes('node_modules/drizzle-orm');
}

/** Holds a property for many values, in bounded time; a failure prints the seed, and a call that hangs is one. */
export async function holds(property: fc.IAsyncProperty<never> | fc.IAsyncProperty<unknown>): Promise<void> {
  await fc.assert(property as fc.IAsyncProperty<unknown>, {
    numRuns: 400,
    interruptAfterTimeLimit: 8_000,
    timeout: 15_000,
  });
}

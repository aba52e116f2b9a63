import { inspect } from 'node:util';
import { QueueError } from 'drizzle-queue';
import fc from 'fast-check';
import { sqlStateOf } from '../../src/core/sql/executor.ts';
import { Trap } from './hostile.ts';

/** How a message of ours about an argument begins: it says who is meant. */
const OURS =
  /^(enqueue|enqueueMany|enqueueFrom|enqueueQuery|find|list|cancel|pause|resume|redrive|job\.progress|defineJob|createQueue|createQueueTables|createWorker|drain|runNext|snooze|exponentialBackoff|fixedBackoff|handle|handleBatch|handlers|lockRows|popRows|holdRows|drizzle-queue)\b/;

/** A call that has not answered after this hangs: those here take milliseconds. */
const HANGS_MS = 10_000;

/** What {@link attempt} throws when a call has not come to its end. */
class Hang extends Error {}

/**
 * Whether a hostile call was accepted, or refused by an error that says what is wrong: ours, Drizzle's, or the database's.
 *
 * @throws when it says nothing, or hangs
 */
export async function attempt(call: () => unknown): Promise<'accepted' | 'refused'> {
  let timer: NodeJS.Timeout | undefined;
  const hang = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Hang(`A call hangs: no answer for ${HANGS_MS} ms`)), HANGS_MS);
  });
  try {
    await Promise.race([(async () => await call())(), hang]);
    return 'accepted';
  } catch (error) {
    if (error instanceof Hang) throw error;
    if (isRefusal(error)) return 'refused';
    throw new Error(`An error that says nothing: ${inspect(error)}`, { cause: error });
  } finally {
    clearTimeout(timer);
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

/**
 * Holds a property for many values; a failure prints the seed, and a call that hangs is one. What takes too long as a whole is one
 * too: fast-check takes an interruption for a success unless it is told not to, and so a hang for the end of the time.
 */
export async function holds(
  property: fc.IAsyncProperty<never> | fc.IAsyncProperty<unknown>,
  numRuns = 400,
): Promise<void> {
  await fc.assert(property as fc.IAsyncProperty<unknown>, {
    numRuns,
    timeout: 2 * HANGS_MS,
    // Below the timeout of the tests, so that a failure is still reported with its seed when making it smaller takes long.
    interruptAfterTimeLimit: 50_000,
    markInterruptAsFailure: true,
  });
}

/** What calls of both sorts have met: a property that only ever meets one of the two says little. */
export const BOTH = ['accepted', 'refused'];

import { pause } from './pause.ts';

/** Whether the promise resolves within so many milliseconds. */
export async function within(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const timeout = new AbortController();
  const done = promise.then(() => true);
  const late = pause(ms, timeout.signal).then(() => false);
  const result = await Promise.race([done, late]);
  timeout.abort();
  return result;
}

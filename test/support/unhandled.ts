import { onTestFinished } from 'vitest';

/** Everything that ends a process unless something listens, until the end of the test. */
export function noteUnhandled(): readonly unknown[] {
  const seen: unknown[] = [];
  const note = (error: unknown) => void seen.push(error);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  return seen;
}

import { warn } from '../runtime.ts';

/** The warnings that were given: an app may have many workers, and one line is enough. */
const given = new Set<string>();

/**
 * A warning of the process, the first time only.
 *
 * @param about what two warnings must share to count as the same
 */
export function warnOnce(warning: string, about = warning): void {
  if (given.has(about)) return;
  given.add(about);
  warn(warning);
}

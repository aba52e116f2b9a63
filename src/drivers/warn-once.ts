import { warn } from '../runtime.ts';

/** The warnings that were given: an app may have many workers, and one line is enough. */
const given = new Set<string>();

/** A warning of the process, the first time only. */
export function warnOnce(warning: string): void {
  if (given.has(warning)) return;
  given.add(warning);
  warn(warning);
}

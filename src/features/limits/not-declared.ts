import type { QueueLimits } from './settings/limit-settings.ts';

/** The same in all copies of this package: a command has its own of what is not in an entry. */
export const NOT_DECLARED: unique symbol = Symbol.for('drizzle-queue: limits that are not declared');

/**
 * For `limitsIn` in place of the limits, in a process that does not know the code of the app: any queue may
 * have some, and groups.
 *
 * @param tellsGroups whether statements about jobs in groups also write what claims must know of that
 */
export function notDeclared(tellsGroups: boolean): Readonly<Record<string, QueueLimits>> {
  const nothing: Readonly<Record<string, QueueLimits>> = {};
  return Object.assign(nothing, { [NOT_DECLARED]: tellsGroups });
}

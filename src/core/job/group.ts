import type { JobDefinition } from './definition.ts';
import { checkInteger, checkText, MAX_COST, MAX_NAME_BYTES } from './limits.ts';

/** The group of a job without one, in a queue whose jobs are in groups. */
export const NO_GROUP = '-';

/** What stands for every group of a queue where limits are set, and so is the name of none. */
export const EVERY_GROUP = '*';

/**
 * The group of a job, as its enqueue or its definition says; `undefined` when neither does.
 *
 * @param given the enqueue's own
 * @throws TypeError when it is not a text of 1–200 bytes or is `*`, or the definition's function throws
 */
export function groupOf(job: JobDefinition, payload: unknown, given: string | undefined): string | undefined {
  if (given !== undefined) return checkGroup(`enqueue('${job.kind}'): group`, given);
  if (job.group === undefined) return undefined;
  return checkGroup(`${ofDefinition(job)} group`, computed(job, 'group', job.group, payload));
}

/**
 * What a job costs, as its enqueue or its definition says; `undefined` when neither does.
 *
 * @param given the enqueue's own
 * @throws RangeError when it is not a whole number from 1 to 10,000
 * @throws TypeError when the definition's function throws
 */
export function costOf(job: JobDefinition, payload: unknown, given: number | undefined): number | undefined {
  if (given !== undefined) return checkInteger(`enqueue('${job.kind}'): cost`, given, 1, MAX_COST);
  if (job.cost === undefined) return undefined;
  return checkInteger(`${ofDefinition(job)} cost`, computed(job, 'cost', job.cost, payload), 1, MAX_COST);
}

/** @throws TypeError when it is not a text of 1–200 bytes, or is `*` */
export function checkGroup(what: string, group: string): string {
  if (checkText(what, group, MAX_NAME_BYTES) !== EVERY_GROUP) return group;
  throw new TypeError(`${what} must not be '${EVERY_GROUP}': it stands for every group`);
}

function ofDefinition({ kind }: JobDefinition): string {
  return `enqueue('${kind}'): what its definition returns as`;
}

function computed<T>(
  { kind }: JobDefinition,
  name: 'group' | 'cost',
  compute: (payload: never) => T,
  payload: unknown,
): T {
  try {
    // `defineJob` has typed the function by the schema whose input the enqueue takes.
    return compute(payload as never);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TypeError(`enqueue('${kind}'): the ${name} function of its definition threw: ${reason}`, {
      cause,
    });
  }
}

import { QueueError } from '../../errors.ts';

/** Why some ids cannot be used, and where they come from. */
export const IDS_TOO_LARGE =
  'JavaScript numbers are exact up to 2^53 only, and Citus gives larger ids on nodes of group 32 and above';

/**
 * The id of a job that was just inserted.
 *
 * @throws QueueError when JavaScript cannot hold it: the job would never end
 */
export function newJobId(id: unknown): number {
  const number = Number(id);
  if (Number.isSafeInteger(number)) return number;
  throw new QueueError(
    `The new job has the id ${String(id)}: ${IDS_TOO_LARGE}. Enqueue through the coordinator. ` +
      'If this was not a transaction, the job is stored: delete it',
  );
}

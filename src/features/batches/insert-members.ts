import type { NewJob } from '../../core/job/new-job.ts';
import { insertAround } from '../../core/queue/enqueue/enqueue-around.ts';
import type { QueueOfWorkflows } from '../../core/queue/queue-workflows.ts';
import type { Executor } from '../../core/sql/executor.ts';
import { QueueError } from '../../errors.ts';
import { CHUNK } from './sql/chunk.ts';

/** A job to insert, and the payload that it was given. */
export interface Member {
  readonly job: NewJob;
  readonly entry: { readonly payload?: unknown };
}

/** All jobs of a statement are one text, which JavaScript and the server bound. */
const MAX_CHARACTERS = 8 * 1024 * 1024;

function charactersOf({ payload, metadata, own = [] }: NewJob): number {
  return own.reduce((sum, value) => sum + (value?.length ?? 0), payload.length + metadata.length);
}

/** The members that each statement inserts, one after the other: neither too many nor too large ones. */
export function* inStatements<TMember extends Pick<Member, 'job'>>(
  members: readonly TMember[],
): Generator<TMember[]> {
  let some: TMember[] = [];
  let characters = 0;
  for (const member of members) {
    const length = charactersOf(member.job);
    if (some.length > 0 && (some.length >= CHUNK || characters + length > MAX_CHARACTERS)) {
      yield some;
      some = [];
      characters = 0;
    }
    some.push(member);
    characters += length;
  }
  if (some.length > 0) yield some;
}

/**
 * @throws TypeError for a job with a key rule: such an enqueue may return another job, or none, so nothing
 * could wait for it
 */
export function checkMembers(caller: string, jobs: readonly NewJob[]): void {
  const ruled = jobs.find(({ rule }) => rule !== undefined);
  if (ruled === undefined) return;
  throw new TypeError(
    `${caller}: '${ruled.kind}' has debounce, throttle, replace or unique, ` +
      'but here each entry must become a job of its own',
  );
}

/**
 * Inserts jobs for whose end something waits; returns their ids, in order.
 *
 * @throws TypeError for a job with a key rule: see {@link checkMembers}
 * @throws QueueError where a live job has the unique key of one: others may wait for that one, or end it
 */
export async function insertMembers(
  tx: Executor,
  { settings }: Pick<QueueOfWorkflows, 'settings'>,
  caller: string,
  members: readonly Member[],
): Promise<number[]> {
  const ids: number[] = [];
  checkMembers(
    caller,
    members.map(({ job }) => job),
  );
  for (const some of inStatements(members)) {
    const jobs = some.map(({ job }) => job);
    const results = await insertAround(
      tx,
      settings(),
      jobs,
      some.map(({ entry }) => entry),
    );
    for (const [index, { id, outcome }] of results.entries()) {
      if (outcome !== 'enqueued') throw taken(caller, jobs[index], id);
      ids.push(id);
    }
  }
  return ids;
}

function taken(caller: string, job: NewJob | undefined, id: number | undefined): QueueError {
  return new QueueError(
    `${caller}: job ${id} ('${job?.kind}') has the unique key '${job?.uniqueKey}', and ` +
      'cannot be waited for here. Leave out the key: the jobs of one step or flow exist once in any case',
  );
}

import type { JobDefinition, OutputInput } from '../../index.ts';
import { checkDefinition } from '../../internal.ts';
import { type MemberEnd, outputToStore } from '../../testing-face.ts';

/** How a job has ended for which the job of `runHandler` has waited before it began. */
export type ParentEnd<TJob extends JobDefinition> = {
  /** @default counted from 100,001 on */
  readonly id?: number | undefined;
} & (
  | ({ readonly state: 'completed' } & (undefined extends OutputInput<TJob>
      ? { readonly output?: OutputInput<TJob> }
      : { readonly output: OutputInput<TJob> }))
  | { readonly state: 'discarded' | 'cancelled'; readonly reason: string }
);

/** A job for `runHandler` that its job has waited for, made by {@link ended}. */
export interface GivenParent {
  readonly job: JobDefinition;
  readonly end: ParentEnd<JobDefinition>;
}

const FIRST_ID = 100_001;

/**
 * A job that the one of `runHandler` has waited for before it began, in a flow or as a member of its batch:
 * its definition, and how it has ended. `step.parents` and `step.parentCounts` return it.
 *
 * ```ts
 * const parents = [
 *   ended(readPage, { state: 'completed', output: { words: 7 } }),
 *   ended(readPage, { state: 'discarded', reason: 'no such page' }),
 * ];
 * const run = await runHandler(writeReport, { payload, queue, parents }, writeReportHandler);
 * ```
 */
export function ended<TJob extends JobDefinition>(job: TJob, end: ParentEnd<TJob>): GivenParent {
  checkDefinition('ended', job);
  // What is read of it later is what its own definition says.
  return { job, end: end as ParentEnd<JobDefinition> };
}

/** As their results would be found. @throws InvalidOutputError for an output that its definition refuses */
export async function toMemberEnds(parents: readonly GivenParent[]): Promise<readonly MemberEnd[]> {
  return await Promise.all(
    parents.map(async ({ job, end }, at) => {
      const { id = FIRST_ID + at, state } = end;
      const { kind } = job;
      if (end.state !== 'completed') return { id, kind, state, output: null, message: end.reason };
      return {
        id,
        kind,
        state,
        output: JSON.parse(await outputToStore(job, end.output)),
        message: undefined,
      };
    }),
  );
}

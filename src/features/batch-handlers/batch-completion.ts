import type { JobDefinition, OutputInput } from '../../core/job/definition.ts';
import { transitionFor } from '../../core/job/transition.ts';
import { outputToStore } from '../../core/job/validate.ts';
import { type HeldJobLock, lockHeldJobs } from '../../core/queries/hold/lock-held-jobs.ts';
import { completeJobs } from '../../core/queries/settle/complete-job.ts';
import type { FinishedJob } from '../../core/queries/settle/finish-jobs.ts';
import type { Transaction } from '../../core/sql/executor.ts';
import { faultPoint } from '../../core/sql/fault-point.ts';
import { whileLocked } from '../../core/time/while-locked.ts';
import type { BatchMember } from '../../core/worker/run/batch-call.ts';
import {
  checkIsTransaction,
  HAS_COMMITTED,
  outsideTransaction,
  STILL_AT_WORK,
  STILL_OPEN,
} from '../../core/worker/run/completion.ts';
import { LeaseLostError } from '../../errors.ts';
import { batchResults, isOutput } from './batch-results.ts';

const LOST = 'another worker has claimed it, or it is already settled; so no job of its batch was completed';

/**
 * The `complete(tx)` of one batch, for all its jobs but those that its results exclude. Like that of a single
 * job it can be called again when its transaction has rolled back.
 */
export class BatchCompletion {
  readonly #definition: JobDefinition;
  readonly #members: readonly BatchMember[];
  /** Ended in a transaction, provided that it commits. */
  #ended: ReadonlySet<BatchMember> = new Set();
  #results: readonly unknown[] | undefined;
  #underWay = false;

  /** @param members those whose jobs the handler was given, in their order */
  constructor(definition: JobDefinition, members: readonly BatchMember[]) {
    this.#definition = definition;
    this.#members = members;
  }

  has(member: BatchMember): boolean {
    return this.#ended.has(member);
  }

  /** What the last call was given for each job; what the handler returns is then ignored. */
  get results(): readonly unknown[] | undefined {
    return this.#results;
  }

  /** See `BatchContext.complete`. */
  async complete(tx: Transaction, given: readonly unknown[] | undefined): Promise<void> {
    checkIsTransaction(tx);
    const results = batchResults("A batch's complete(tx) was given", given, this.#members.length);
    const members = this.#members.filter((_, at) => isOutput(results[at]));
    const [first] = members;
    const named = (first ?? this.#members[0])?.job;
    if (this.#underWay && named !== undefined) {
      throw new LeaseLostError(named.kind, named.id, STILL_AT_WORK);
    }
    if (first === undefined) {
      // Nothing is to be completed, so the transaction has no part in it.
      this.#results = results;
      return;
    }
    this.#underWay = true;
    try {
      checkOpen(members);
      const outputs = await first.until(
        Promise.all(results.filter(isOutput).map(async (output) => await this.#toStore(output))),
      );
      await first.environment.checkTransaction?.(tx);
      if (this.#ended.size > 0) await this.#lockAgain(tx, first, members);
      checkOpen(members);
      await faultPoint('complete: checked');
      await this.#finish(tx, first, members, outputs);
      this.#results = results;
    } finally {
      this.#underWay = false;
    }
  }

  #toStore(output: unknown): string | Promise<string> {
    // What an output schema takes is checked by it; without one, anything that JSON can hold is an output.
    return outputToStore(this.#definition, output as OutputInput<JobDefinition>);
  }

  async #finish(
    tx: Transaction,
    { environment, holder, job }: BatchMember,
    members: readonly BatchMember[],
    outputs: readonly string[],
  ): Promise<void> {
    const finishes = members.map(({ job, facts }, at): FinishedJob => {
      const transition = transitionFor({ type: 'completed', output: outputs[at] ?? 'null' }, facts);
      if (transition.type !== 'finish') throw new TypeError('A completed attempt finishes its job');
      return { id: job.id, fence: job.fence, transition };
    });
    const endedBefore = this.#ended;
    // Before the statement: once it is sent it may take effect, whatever comes back.
    this.#ended = new Set([...endedBefore, ...members]);
    const completion = await completeJobs(tx, environment.tables, holder, finishes);
    if (completion === 'completed') return;
    if (completion === 'outside') {
      this.#ended = endedBefore;
      throw outsideTransaction(job);
    }
    // The others end with the transaction, should it be committed all the same.
    const lost = new Set(completion.lost.map(({ id }) => id));
    this.#ended = new Set([...this.#ended].filter((one) => !lost.has(one.job.id) || endedBefore.has(one)));
    throw lostOf(
      members.filter((member) => lost.has(member.job.id)),
      endedBefore,
    );
  }

  /** As of a single job; of several rows the worst counts. */
  async #lockAgain(
    tx: Transaction,
    { environment, holder, job }: BatchMember,
    members: readonly BatchMember[],
  ): Promise<void> {
    const jobs = members.map((member) => member.job);
    let gone = members;
    const found = await whileLocked(async (): Promise<HeldJobLock> => {
      const { here, elsewhere } = await lockHeldJobs(tx, environment.tables, holder, jobs);
      gone = members.filter(({ job: { id } }) => !here.has(id) && !elsewhere.has(id));
      return gone.length > 0 ? 'gone' : elsewhere.size > 0 ? 'locked' : 'ours';
    });
    if (found === 'gone') throw lostOf(gone, this.#ended);
    if (found === 'locked') throw new LeaseLostError(job.kind, job.id, STILL_OPEN);
  }
}

/** @param ended those that an earlier call has ended */
function lostOf(lost: readonly BatchMember[], ended: ReadonlySet<BatchMember>): LeaseLostError {
  // A job that another worker has claimed makes the more useful message.
  const claimed = lost.find((one) => !ended.has(one));
  const job = claimed?.job ?? lost[0]?.job;
  if (job === undefined) throw new TypeError('A completion has lost no job');
  return new LeaseLostError(job.kind, job.id, claimed === undefined ? HAS_COMMITTED : LOST);
}

/** @throws what the first of them was ended for */
function checkOpen(members: readonly BatchMember[]): void {
  for (const member of members) member.checkOpen();
}

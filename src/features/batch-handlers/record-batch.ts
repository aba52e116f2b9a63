import { jobsInWords } from '../../core/job/jobs-in-words.ts';
import type { Begun } from '../../core/queries/begin/begin-jobs.ts';
import { Doubling } from '../../core/time/doubling.ts';
import { inHalves } from '../../core/worker/base/in-halves.ts';
import { isAboutTheServer } from '../../core/worker/base/refusal.ts';
import type { BeginningsOptions } from '../../core/worker/begin/beginnings.ts';
import { isPrecious } from '../../core/worker/begin/precious-attempt.ts';
import { recordBeginnings } from '../../core/worker/begin/record-beginnings.ts';
import type { Attempt } from '../../core/worker/run/attempt.ts';

/** Which attempts of a batch must not begin now. */
export interface RecordedBatch {
  /** No longer held: they must not run. */
  readonly lost: readonly Attempt[];
  /** Another transaction has locked their rows, or the worker stops. */
  readonly locked: readonly Attempt[];
  /** The database refuses to record them. */
  readonly refused: readonly Attempt[];
}

/**
 * Records the beginning of the precious attempts of a batch, just before its handler is called; the others
 * have begun with their claim. So a crash before the call spends no precious attempt, however long the batch
 * has gathered. Never rejects: while the server is away it tries again, and what it refuses is halved until
 * the refused row is alone.
 */
export async function recordBatch(
  options: BeginningsOptions,
  attempts: readonly Attempt[],
  stopping: AbortSignal,
): Promise<RecordedBatch> {
  const { holder, events } = options;
  const lost: Attempt[] = [];
  const locked: Attempt[] = [];
  const refused: Attempt[] = [];
  const precious = attempts.filter(({ job }) => isPrecious(job) && !job.begun);
  await inHalves(precious, {
    write: async (group) => {
      const answer = await record(options, group, stopping);
      for (const attempt of group) {
        const { id } = attempt.job;
        if (!answer.begun.has(id)) (answer.locked.has(id) ? locked : lost).push(attempt);
      }
    },
    refuse: (attempt, error) => {
      refused.push(attempt);
      events.emit('error', { error, during: `beginning ${jobsInWords(1)} of '${holder.queue}'` });
    },
  });
  return { lost, locked, refused };
}

/** @throws what may lie in a row */
async function record(
  options: BeginningsOptions,
  group: readonly Attempt[],
  stopping: AbortSignal,
): Promise<Begun> {
  const { holder, events, retries } = options;
  const jobs = group.map(({ job }) => job);
  for (const delays = new Doubling(); !stopping.aborted; ) {
    try {
      return await recordBeginnings(options, jobs, stopping);
    } catch (error) {
      if (!isAboutTheServer(error)) throw error;
      events.emit('error', { error, during: `beginning ${jobsInWords(group.length)} of '${holder.queue}'` });
      await retries.sleep(delays.next(), stopping);
    }
  }
  return { begun: new Set(), locked: new Set(jobs.map(({ id }) => id)) };
}

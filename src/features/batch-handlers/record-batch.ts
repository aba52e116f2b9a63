import { jobsInWords } from '../../core/job/jobs-in-words.ts';
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

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;

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
  const precious = attempts.filter(({ job }) => isPrecious(job) && !job.begun);
  if (precious.length === 0) return { lost: [], locked: [], refused: [] };
  return await record(options, precious, stopping);
}

async function record(
  options: BeginningsOptions,
  group: readonly Attempt[],
  stopping: AbortSignal,
): Promise<RecordedBatch> {
  const { holder, events, retries } = options;
  for (let delayMs = FIRST_RETRY_MS; !stopping.aborted; delayMs = Math.min(delayMs * 2, MAX_RETRY_MS)) {
    try {
      const jobs = group.map(({ job }) => job);
      const { begun, locked } = await recordBeginnings(options, jobs, stopping);
      const left = group.filter(({ job }) => !begun.has(job.id));
      return {
        lost: left.filter(({ job }) => !locked.has(job.id)),
        locked: left.filter(({ job }) => locked.has(job.id)),
        refused: [],
      };
    } catch (error) {
      const isRefused = !isAboutTheServer(error);
      if (isRefused && group.length > 1) return await recordHalves(options, group, stopping);
      events.emit('error', { error, during: `beginning ${jobsInWords(group.length)} of '${holder.queue}'` });
      if (isRefused) return { lost: [], locked: [], refused: group };
      await retries.sleep(delayMs, stopping);
    }
  }
  return { lost: [], locked: group, refused: [] };
}

async function recordHalves(
  options: BeginningsOptions,
  group: readonly Attempt[],
  stopping: AbortSignal,
): Promise<RecordedBatch> {
  const middle = group.length >> 1;
  const first = await record(options, group.slice(0, middle), stopping);
  const second = await record(options, group.slice(middle), stopping);
  return {
    lost: [...first.lost, ...second.lost],
    locked: [...first.locked, ...second.locked],
    refused: [...first.refused, ...second.refused],
  };
}

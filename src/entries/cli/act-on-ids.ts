import type { Call } from './context.ts';
import type { ExitCode } from './exit-code.ts';
import { untilInterrupted } from './interruption.ts';
import { complain } from './terminal/complain.ts';
import { printable } from './terminal/printable.ts';

/** What became of one job. */
export interface JobDone {
  readonly id: number;
  readonly done: boolean;
  /** Such as `cancelled` or `not-found`. */
  readonly outcome: string;
}

/**
 * Does something with jobs, one after the other, and says what became of each; 1 if not all were done. What
 * was done before an error or Ctrl-C is said, too.
 */
export async function actOnIds(
  { output }: Call<unknown>,
  ids: readonly number[],
  act: (id: number) => Promise<Omit<JobDone, 'id'>>,
): Promise<ExitCode> {
  const jobs: JobDone[] = [];
  const { signal, forget } = untilInterrupted();
  let stopped: 'interrupted' | 'failed' | undefined;
  try {
    for (const id of ids) {
      if (signal.aborted) {
        stopped = 'interrupted';
        complain(`Interrupted: ${ids.length - jobs.length} of ${ids.length} jobs were not changed.`);
        return 130;
      }
      const job = { id, ...(await act(id)) };
      jobs.push(job);
      if (output.json) continue;
      // Of one that was to be redriven, 'completed' alone would read as a success.
      const became = job.done ? job.outcome : `not changed: ${job.outcome}`;
      await output.write(`${id} ${output.styled(printable(became), job.done ? 'green' : 'yellow')}\n`);
    }
  } catch (error) {
    stopped = 'failed';
    throw error;
  } finally {
    forget();
    if (output.json) await output.document({ ...(stopped !== undefined && { stopped }), jobs });
  }
  return jobs.every(({ done }) => done) ? 0 : 1;
}

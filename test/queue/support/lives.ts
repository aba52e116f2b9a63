import type { Executor } from 'drizzle-queue';
import type { FinalState } from 'drizzle-queue/schema';
import { finishJobs } from '../../../src/core/queries/settle/finish-jobs.ts';
import { claim, tables } from '../../queries/support/jobs.ts';

interface Ending {
  readonly queue?: string;
  readonly kind?: string;
  readonly state?: FinalState;
  readonly output?: unknown;
  readonly keepResult?: boolean | 'outcome';
  readonly limit?: number;
}

/** Claims jobs of queue `q` (unless given another) as worker 1 (one unless given more) and ends them; answers their ids. */
export async function endJob(
  db: Executor,
  { queue = 'q', kind = 'send-receipt', state = 'completed', ...ending }: Ending = {},
): Promise<number[]> {
  const { output = null, keepResult = true, limit = 1 } = ending;
  const jobs = await claim(db, { queue, kinds: [kind], limit });
  const error = state === 'completed' ? null : { attempt: 1, name: 'Error', message: 'no' };
  const ended = await finishJobs(
    db,
    tables,
    { queue, workerId: 1 },
    jobs.map(({ id, fence }) => ({
      id,
      fence,
      transition: { type: 'finish', state, output: JSON.stringify(output), error, keepResult },
    })),
  );
  return [...ended];
}

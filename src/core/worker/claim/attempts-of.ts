import { Attempts } from '../begin/attempts.ts';
import type { AttemptsOptions } from '../begin/attempts-options.ts';
import { Settler } from '../settle/settle.ts';
import type { ClaimLoopOptions } from './claim-loop-options.ts';

/** What becomes of the jobs that a loop claims. */
export function attemptsOf(
  options: ClaimLoopOptions,
  told: Pick<AttemptsOptions, 'onChange' | 'onPutBack'>,
): Attempts {
  const { environment, claims, settlements, questions, queue, groups, watch } = options;
  const holder = { queue, workerId: environment.workerId };
  return new Attempts({
    ...options,
    ...told,
    runner: claims,
    runs: groups?.runs,
    handlerHolds: groups?.handlerHolds({ ...options, db: questions, holder }),
    // A drain has to end.
    persistent: watch !== undefined,
    holder,
    settler: new Settler({ ...options, ...environment, db: settlements, holder }),
  });
}

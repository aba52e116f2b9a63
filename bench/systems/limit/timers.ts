import { wait } from '../../child/handling.ts';
import type { Program } from '../../child/programs.ts';

export interface TimersOptions {
  readonly concurrency: number;
  readonly waitMs: number;
}

/** So many loops that wait, one wait after the other, with no queue. */
export const work: Program = async ({ onJob }, options) => {
  const { concurrency, waitMs } = options as TimersOptions;
  let ended = false;
  let n = 0;
  const loops = Array.from({ length: concurrency }, async () => {
    while (!ended) {
      await wait(waitMs);
      onJob(n++);
    }
  });
  return async () => {
    ended = true;
    await Promise.all(loops);
  };
};

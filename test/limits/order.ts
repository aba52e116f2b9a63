import type { Run, Start } from './audit.ts';

/** Whether a run of a job takes up its group's time: it has not ended, and its worker has not been removed. */
function isOpenAt({ endedAt, departedAt }: Run, at: number): boolean {
  return (endedAt === null || endedAt > at) && (departedAt === null || departedAt > at);
}

/** The runs of one group that began while another one of a living worker had not ended: none, where they go one after the other. */
export function overlaps(runs: readonly Run[]): string[] {
  let open: Run[] = [];
  return runs.flatMap((run) => {
    open = open.filter((other) => isOpenAt(other, run.beganAt));
    const found = open.map((other) => `${shown(run)} began while ${shown(other)} ran`);
    open.push(run);
    return found;
  });
}

/** The most runs of one group that were open at once in living workers. */
export function mostAtOnce(runs: readonly Run[]): number {
  let most = 0;
  let open: Run[] = [];
  for (const run of runs) {
    open = [...open.filter((other) => isOpenAt(other, run.beganAt)), run];
    most = Math.max(most, open.length);
  }
  return most;
}

/**
 * The runs of one group that began after another which stood behind it when that was claimed. A crash excuses those whose worker had ended
 * both, and was removed before it could write the first.
 */
export function misplaced(runs: readonly Run[]): string[] {
  return runs.flatMap((late, index) =>
    runs.slice(0, index).flatMap((early, before) => {
      const stoodBefore = late.runAt < early.runAt || (late.runAt === early.runAt && late.job < early.job);
      if (!stoodBefore || late.job === early.job) return [];
      const last = runs.slice(0, before).findLast(({ job }) => job === late.job);
      const unwritten =
        last !== undefined &&
        last.worker === early.worker &&
        last.outcome === 'completed' &&
        last.endedAt !== null &&
        last.endedAt <= early.beganAt &&
        early.departedAt !== null &&
        early.departedAt <= late.beganAt;
      return unwritten ? [] : [`${shown(late)} began after ${shown(early)}, which stood behind it`];
    }),
  );
}

/** The jobs of one group that began although a discarded one had stopped it, and nobody had let it go on. */
export function unstopped(runs: readonly Run[], actions: readonly { readonly at: number }[]): string[] {
  return runs.flatMap((stopping, index) => {
    const next = runs[index + 1];
    if (stopping.outcome !== 'discarded' || next === undefined || next.job === stopping.job) return [];
    const freed = actions.some(({ at }) => at >= (stopping.endedAt ?? 0) && at <= next.beganAt);
    return freed ? [] : [`${shown(next)} began behind ${shown(stopping)}, which was discarded`];
  });
}

/** The largest sum of costs that any window of so many milliseconds sees, wherever it begins. */
export function mostInWindow(starts: readonly Pick<Start, 'at' | 'cost'>[], windowMs: number): number {
  let most = 0;
  let sum = 0;
  let first = 0;
  for (const { at, cost } of starts) {
    sum += cost;
    // Two starts that are a window apart are not in one.
    while (at - (starts[first]?.at ?? at) >= windowMs * 1_000) sum -= starts[first++]?.cost ?? 0;
    most = Math.max(most, sum);
  }
  return most;
}

function shown({ job, worker, outcome }: Run): string {
  return `${job} in ${worker} (${outcome ?? 'open'})`;
}

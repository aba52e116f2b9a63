import type { SilentWorker } from '../../queries/operate/find-silent-workers.ts';
import type { LiveFigures } from './count-live.ts';
import { inWords, isWell, judge, unknown } from './make-vital.ts';
import type { Vital } from './queue-vitals.ts';

/** Whether workers hang, or die at their jobs. */
export function judgeWorkers(live: LiveFigures, silent: readonly SilentWorker[] | undefined): Vital[] {
  return [
    ...(silent === undefined
      ? [unknown('workers-silent', 'count', 'The workers could not be read in time', 'Look at pg_locks.')]
      : judge(
          { code: 'workers-silent', unit: 'count', warningFrom: 1, errorFrom: Number.POSITIVE_INFINITY },
          silent.length === 0 ? [] : [silentWorkers(silent)],
          'Every registered worker has been seen within a minute',
        )),
    ...judgeKilled(live),
  ];
}

function judgeKilled({ queues, kinds, results, hasAllQueues, timedOut }: LiveFigures): Vital[] {
  const byKind = new Map<string, { queue: string; kind: string; value: number }>();
  for (const { queue, kind, killers } of [...kinds, ...(results ?? [])]) {
    const key = JSON.stringify([queue, kind]);
    byKind.set(key, { queue, kind, value: (byKind.get(key)?.value ?? 0) + (killers ?? 0) });
  }
  const found = judge(
    { code: 'workers-killed', unit: 'count', warningFrom: Number.POSITIVE_INFINITY, errorFrom: 1 },
    [...byKind.values()].map(({ queue, kind, value }) => ({
      queue,
      kind,
      value,
      message:
        value === 1
          ? `1 job of '${kind}' in '${queue}' has killed two or more workers`
          : `${value} jobs of '${kind}' in '${queue}' have each killed two or more workers`,
      fix:
        value === 1
          ? `Cancel it, or deploy a handler of '${kind}' that survives it.`
          : `Cancel them, or deploy a handler of '${kind}' that survives them.`,
    })),
    'No job has killed two workers',
  );
  const isCounted =
    hasAllQueues &&
    kinds.every(({ killers }) => killers !== undefined) &&
    [...queues.values()].every(({ precision }) => precision === 'exact');
  if (!isWell(found) || (results !== undefined && isCounted)) return found;
  if (results !== undefined && !timedOut) {
    const message = 'Too many live jobs to check which ones have killed workers';
    const fix = 'Look for WorkerLostError among the discarded jobs.';
    return [unknown('workers-killed', 'count', message, fix)];
  }
  const message = 'Timed out looking for jobs that have killed workers';
  return [unknown('workers-killed', 'count', message, 'Look at pg_locks.')];
}

function silentWorkers(silent: readonly SilentWorker[]) {
  const [first] = silent;
  return {
    ...(first !== undefined && { worker: first.name }),
    value: silent.length,
    message:
      silent.length === 1
        ? `The registered worker '${first?.name}' has not been seen for ${inWords(first?.silentMs ?? 0)}`
        : `${silent.length} registered workers have not been seen for a minute, ` +
          `'${first?.name}' for ${inWords(first?.silentMs ?? 0)}`,
    fix:
      silent.length === 1
        ? 'Start a worker: it declares this one gone, and its jobs are due again.'
        : 'Start a worker: it declares them gone, and their jobs are due again.',
  };
}

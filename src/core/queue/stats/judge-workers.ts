import type { SilentWorker } from '../../queries/operate/find-silent-workers.ts';
import type { LiveFigures } from './count-live.ts';
import { inWords, judge, unknown } from './make-vital.ts';
import type { Vital } from './queue-vitals.ts';

/** Whether workers hang, or die at their jobs. */
export function judgeWorkers(
  { kinds, results }: LiveFigures,
  silent: readonly SilentWorker[] | undefined,
): Vital[] {
  const killers = [...kinds, ...results];
  const byKind = new Map<string, { queue: string; kind: string; value: number }>();
  for (const { queue, kind, killers: count } of killers) {
    const key = JSON.stringify([queue, kind]);
    byKind.set(key, { queue, kind, value: (byKind.get(key)?.value ?? 0) + count });
  }
  return [
    ...(silent === undefined
      ? [unknown('workers-silent', 'count', 'The workers could not be read in time', 'Look at pg_locks.')]
      : judge(
          { code: 'workers-silent', unit: 'count', warningFrom: 1, errorFrom: Number.POSITIVE_INFINITY },
          silent.length === 0 ? [] : [silentWorkers(silent)],
          'Every registered worker has been seen within a minute',
        )),
    ...judge(
      { code: 'workers-killed', unit: 'count', warningFrom: Number.POSITIVE_INFINITY, errorFrom: 1 },
      [...byKind.values()].map(({ queue, kind, value }) => ({
        queue,
        kind,
        value,
        message: `${value} jobs of '${kind}' in '${queue}' have each killed two or more workers`,
        fix: `Cancel them, or deploy a handler of '${kind}' that survives them.`,
      })),
      'No job has killed two workers',
    ),
  ];
}

function silentWorkers(silent: readonly SilentWorker[]) {
  const [first] = silent;
  return {
    value: silent.length,
    message:
      `${silent.length} registered workers have not been seen for a minute, ` +
      `'${first?.name}' for ${inWords(first?.silentMs ?? 0)}`,
    fix: 'Start a worker: it declares them gone, and their jobs are due again.',
  };
}

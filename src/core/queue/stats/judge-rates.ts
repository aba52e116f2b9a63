import { type JudgedValue, judge, unknown } from './make-vital.ts';
import type { KindRates, QueueRates } from './queue-stats.ts';
import type { Vital } from './queue-vitals.ts';

/** With fewer, one failure would be a tenth. */
const LEAST = 10;

/** How many jobs are discarded and how many attempts retried, of each kind. */
export function judgeRates(rates: QueueRates | undefined, hasMetrics: boolean): Vital[] {
  if (rates === undefined) {
    const message = (what: string) =>
      hasMetrics
        ? 'The metrics of the workers could not be read'
        : `Without metrics the rate of ${what} is unknown`;
    const fix = hasMetrics
      ? 'queue.check says whether their table is missing; if not, look for locks on it in pg_locks.'
      : "Write createQueue({ metrics: queueMetrics }), with the table of 'drizzle-queue/schema/metrics'.";
    return [
      unknown('discard-rate', 'ratio', message('discarded jobs'), fix),
      unknown('retry-rate', 'ratio', message('retried attempts'), fix),
    ];
  }
  return [
    ...judge(
      { code: 'discard-rate', unit: 'ratio', warningFrom: 0.01, errorFrom: 0.1 },
      rates.kinds.flatMap((kind) => share(kind, 'discarded', ['completed', 'discarded', 'cancelled'])),
      'At most 1 % of the jobs of a kind were discarded',
    ),
    ...judge(
      { code: 'retry-rate', unit: 'ratio', warningFrom: 0.2, errorFrom: Number.POSITIVE_INFINITY },
      rates.kinds.flatMap((kind) => share(kind, 'retried', ['completed', 'retried', 'discarded'])),
      'At most 20 % of the attempts of a kind were retried',
    ),
  ];
}

function share(
  rates: KindRates,
  part: 'discarded' | 'retried',
  of: readonly ('completed' | 'retried' | 'discarded' | 'cancelled')[],
): JudgedValue[] {
  const { queue, kind } = rates;
  const whole = of.reduce((sum, name) => sum + rates[name], 0);
  if (whole < LEAST) return [];
  const value = rates[part] / whole;
  const things = part === 'discarded' ? 'ended jobs' : 'attempts';
  return [
    {
      queue,
      kind,
      value,
      message: `${rates[part]} of ${whole} ${things} of '${kind}' in '${queue}' were ${part}`,
      fix:
        part === 'discarded'
          ? `Look at the errors of '${kind}': queue.list(db, { kind: '${kind}', state: 'discarded' }).`
          : `The errors are in its scheduled jobs. If a service that '${kind}' needs is down, ` +
            `pause '${queue}'.`,
    },
  ];
}

import type { Vital } from '../stats/queue-vitals.ts';
import type { Finding } from './finding.ts';

/** Which vital says the same as a finding, with a value. */
const SAID_BY: Readonly<Partial<Record<Finding['code'], Vital['code']>>> = {
  'claims-refused': 'claims-refused',
  'kind-unserved': 'kind-unserved',
  'worker-silent': 'workers-silent',
};

/**
 * The findings whose cause no vital tells, for a reader of both. A vital that is well or unknown tells
 * nothing, so what a check has found beside it stays. So does what it has found of another queue or kind:
 * a check also looks at schedules that have no due job yet. So do silent workers that the vital only counts.
 */
export function notInVitals(findings: readonly Finding[], vitals: readonly Vital[]): Finding[] {
  const telling = vitals.filter(({ severity }) => severity === 'warning' || severity === 'error');
  return findings.filter(
    ({ code, queue, kind, worker }) =>
      !telling.some(
        (vital) =>
          vital.code === SAID_BY[code] &&
          vital.queue === queue &&
          vital.kind === kind &&
          vital.worker === worker,
      ),
  );
}

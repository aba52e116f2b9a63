import type { Finding, Vital } from 'drizzle-queue';
import { expect, test } from 'vitest';
import { notInVitals } from '../../src/core/queue/check/not-in-vitals.ts';

const finding = (
  code: Finding['code'],
  message: string,
  of: Pick<Finding, 'queue' | 'kind' | 'worker'> = {},
): Finding => ({
  code,
  severity: 'warning',
  ...of,
  message,
  fix: 'fix',
});
const vital = (
  code: Vital['code'],
  severity: Vital['severity'],
  queue?: string,
  kind?: string,
  worker?: string,
): Vital => ({
  ...{ code, severity, queue, kind, message: '', ...(worker !== undefined && { worker }) },
  ...{ value: 1, unit: 'count', fix: '' },
});

const unserved = finding('kind-unserved', "A job of the kind 'a' in 'mail' has been due for 7 minutes", {
  queue: 'mail',
  kind: 'a',
});
const scheduled = finding('kind-unserved', "The schedule 's' is for jobs of the kind 'b' in 'mail'", {
  queue: 'mail',
  kind: 'b',
});
const silent = finding('worker-silent', "The worker 'w' was last seen 7 minutes ago", { worker: 'w' });
const refused = finding('claims-refused', "1 job of 'mail' is parked", { queue: 'mail' });
const tuned = finding('not-tuned', 'no fillfactor');
const all = [unserved, scheduled, silent, refused, tuned];

test('what a vital warns of is not said again', () => {
  expect(notInVitals(all, [vital('kind-unserved', 'error', 'mail', 'a')])).toEqual([
    scheduled,
    silent,
    refused,
    tuned,
  ]);
  expect(
    notInVitals(all, [
      vital('workers-silent', 'warning', undefined, undefined, 'w'),
      vital('claims-refused', 'warning', 'mail'),
    ]),
  ).toEqual([unserved, scheduled, tuned]);
  expect(notInVitals([refused], [vital('claims-refused', 'warning', 'other')])).toEqual([refused]);
});

test('a silent worker that the vital only counts is said by its finding', () => {
  const others = [finding('worker-silent', "The worker 'v' was last seen 6 minutes ago", { worker: 'v' })];
  const counted = vital('workers-silent', 'warning', undefined, undefined, 'w');
  expect(notInVitals([silent, ...others], [counted])).toEqual(others);
});

test('what is well or unknown by the vitals is said by the findings', () => {
  const codes = ['kind-unserved', 'workers-silent', 'claims-refused'] as const;
  expect(
    notInVitals(
      all,
      codes.map((code) => vital(code, 'unknown')),
    ),
  ).toEqual(all);
  expect(
    notInVitals(
      all,
      codes.map((code) => vital(code, 'ok')),
    ),
  ).toEqual(all);
  expect(notInVitals(all, [])).toEqual(all);
});

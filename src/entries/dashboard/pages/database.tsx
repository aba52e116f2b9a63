import type { Finding, Vital } from '../../../index.ts';
import { notInVitals, unlessMissing } from '../../../internal.ts';
import { countText, durationText } from '../duration.ts';
import { boundFirstCount } from '../figures.ts';
import { folded } from '../folded.ts';
import { h } from '../html.ts';
import { Card } from '../parts/card.tsx';
import { Findings, Others } from '../parts/findings.tsx';
import { Page } from '../parts/layout.tsx';
import { Shown } from '../parts/shown.tsx';
import { TableHead } from '../parts/table-head.tsx';
import type { Visit } from '../visit.ts';

/** What is wrong with the set-up of the database, beside what these vitals say with a value. */
export async function findingsOf(
  { settings, looks }: Visit,
  vitals: readonly Vital[],
): Promise<readonly Finding[]> {
  const found = await looks.shared('findings', () => settings.queue.check(settings.db), 'slow');
  return notInVitals(found, vitals);
}

/** What alerts watch, the worst first. */
export async function vitalsOf(visit: Visit): Promise<readonly Vital[]> {
  const { settings } = visit;
  boundFirstCount(visit);
  return (await settings.queue.vitals(settings.db)).vitals;
}

/** What `queue.check` has found, and what alerts watch. */
export async function databasePage(visit: Visit) {
  // Tables that everything needs may be missing, which the findings say.
  const vitals = await unlessMissing(vitalsOf(visit));
  const findings = await findingsOf(visit, vitals ?? []);
  return (
    <Page visit={visit} title="Database">
      {findings.length === 0 ? (
        <section class="card all-well">
          <p>
            <b>Everything is set up as it should be.</b>{' '}
            <span class="muted">Tables, columns, indexes and tuning.</span>
          </p>
        </section>
      ) : (
        <section class="card" aria-label="Findings">
          <Findings visit={visit} findings={findings} />
        </section>
      )}
      <Card id="vitals" title="Vitals">
        {vitals === undefined ? (
          <p class="muted">Unknown while tables are missing.</p>
        ) : (
          <Vitals visit={visit} vitals={vitals} />
        )}
      </Card>
    </Page>
  );
}

function Vitals({ visit, vitals }: { readonly visit: Visit; readonly vitals: readonly Vital[] }) {
  return (
    <table class="rows">
      <TableHead columns={['Check', 'Severity', { number: 'Value' }]} />
      <tbody>
        {folded(vitals).map(([vital, ...others]) => (
          <tr>
            <td>
              <Shown visit={visit} field="finding" text={vital.message} />
              {others.length === 0 ? null : (
                <details id={`vitals-${vital.code}-${vital.severity}`}>
                  <summary>And {others.length} more like it</summary>
                  <Others visit={visit} findings={others} />
                </details>
              )}
            </td>
            <td class={`is-${vital.severity}`}>
              <p>
                <span class="badge">{vital.severity}</span>
              </p>
            </td>
            <td class="number">{valueText(vital)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function valueText({ value, unit }: Vital): string {
  if (value === undefined) return '?';
  if (unit === 'ratio') return `${Math.round(value * 1_000) / 10} %`;
  return unit === 'ms' ? durationText(value) : countText(value);
}

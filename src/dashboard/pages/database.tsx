import type { Finding } from '../../queue/check/finding.ts';
import type { Vital } from '../../queue/stats/queue-vitals.ts';
import { countText, durationText } from '../duration.ts';
import { Findings } from '../parts/findings.tsx';
import { Page } from '../parts/layout.tsx';
import { Foreign } from '../parts/text.tsx';
import type { Visit } from '../visit.ts';

/** What is wrong with the set-up of the database. */
export async function findingsOf({ settings, looks }: Visit): Promise<readonly Finding[]> {
  const found = await looks.shared('findings', () => settings.queue.check(settings.db), 'slow');
  // These two the vitals say, too, with a value.
  return found.filter(({ code }) => code !== 'kind-unserved' && code !== 'worker-silent');
}

/** What alerts watch, the worst first. */
export async function vitalsOf({ settings }: Visit): Promise<readonly Vital[]> {
  return (await settings.queue.vitals(settings.db)).vitals;
}

/** What `queue.check` has found, and what alerts watch. */
export async function databasePage(visit: Visit) {
  const findings = await findingsOf(visit);
  const vitals = await vitalsOf(visit);
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
          <Findings findings={findings} />
        </section>
      )}
      <section class="card" aria-labelledby="vitals-title">
        <h2 id="vitals-title">Vitals</h2>
        <table class="rows">
          <thead>
            <tr>
              <th scope="col">What alerts watch</th>
              <th scope="col">Judged</th>
              <th scope="col" class="number">
                Value
              </th>
            </tr>
          </thead>
          <tbody>
            {vitals.map((vital) => (
              <tr>
                <td>
                  <Foreign text={vital.message} />
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
      </section>
    </Page>
  );
}

function valueText({ value, unit }: Vital): string {
  if (value === undefined) return '?';
  if (unit === 'ratio') return `${Math.round(value * 1_000) / 10} %`;
  return unit === 'ms' ? durationText(value) : countText(value);
}

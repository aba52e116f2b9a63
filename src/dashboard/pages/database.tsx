import type { Finding } from '../../queue/check/finding.ts';
import { Findings } from '../parts/findings.tsx';
import { Page } from '../parts/layout.tsx';
import type { Visit } from '../visit.ts';

/** It asks the catalog; more than enough for it. */
const CHECK_MS = 10_000;

/** What is wrong with the set-up of the database; `undefined` when asking took too long. */
export async function findingsOf({ settings, looks }: Visit): Promise<readonly Finding[] | undefined> {
  // Not in a transaction of ours: behind a pooler it takes two connections.
  const look = await looks.at('findings', CHECK_MS, () => settings.queue.check(settings.db));
  return look.value;
}

/** What `queue.check` has found. */
export async function databasePage(visit: Visit) {
  const findings = await findingsOf(visit);
  return (
    <Page visit={visit} title="Database">
      {findings === undefined ? (
        <p class="notice is-bad">The check took more than {CHECK_MS / 1000} s.</p>
      ) : findings.length === 0 ? (
        <section class="card all-well">
          <p>
            <b>Everything is as it should be.</b>{' '}
            <span class="muted">Tables, columns, indexes, tuning and workers.</span>
          </p>
        </section>
      ) : (
        <section class="card" aria-label="Findings">
          <Findings findings={findings} />
        </section>
      )}
    </Page>
  );
}

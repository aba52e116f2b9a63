import { countText } from '../duration.ts';
import { liveCounts, queueLines } from '../live-counts.ts';
import { Empty } from '../parts/empty.tsx';
import { Page } from '../parts/layout.tsx';
import { Since } from '../parts/moment.tsx';
import { QueueTable } from '../parts/queue-table.tsx';
import { Foreign } from '../parts/text.tsx';
import { word } from '../search.ts';
import type { Visit } from '../visit.ts';

/** The queues, and the kinds of the jobs in them. */
export async function queuesPage(visit: Visit) {
  const queues = await queueLines(visit);
  const kinds = await liveCounts(visit);
  return (
    <Page visit={visit} title="Queues">
      {kinds === undefined ? <TooSlow /> : null}
      <section class="card" aria-label="Queues">
        {queues.length === 0 ? (
          <Empty
            title="No queue is in use"
            code={'const worker = createWorker(db, { queue, handlers });\nawait worker.run();'}
          >
            A queue is there from its first job, or from the first worker that serves it.
          </Empty>
        ) : (
          <QueueTable visit={visit} queues={queues} />
        )}
      </section>
      {kinds === undefined || kinds.length === 0 ? null : (
        <section class="card" aria-labelledby="kinds-title">
          <h2 id="kinds-title">Kinds</h2>
          <table class="rows">
            <thead>
              <tr>
                <th scope="col">Kind</th>
                <th scope="col">Queue</th>
                <th scope="col" class="number">
                  due
                </th>
                <th scope="col" class="number">
                  running
                </th>
                <th scope="col" class="number">
                  scheduled
                </th>
                <th scope="col" class="number">
                  Lag
                </th>
              </tr>
            </thead>
            <tbody>
              {kinds.map(({ queue, kind, due, running, scheduled, oldestDueAt }) => (
                <tr>
                  <td>
                    <a href={visit.links.jobs(`${word('kind', kind)} ${word('queue', queue)}`)}>
                      <Foreign text={kind} mono />
                    </a>
                  </td>
                  <td>
                    <Foreign text={queue} />
                  </td>
                  <td class="number">{countText(due)}</td>
                  <td class="number">{countText(running)}</td>
                  <td class="number">{countText(scheduled)}</td>
                  <td class="number">
                    <Since at={oldestDueAt} nowMs={visit.nowMs} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </Page>
  );
}

/** Says why there is no figure. */
export function TooSlow() {
  return (
    <p class="notice is-bad">
      Counting the live jobs took more than 2 s, so there is no count. An old snapshot may keep dead rows: see
      Database.
    </p>
  );
}

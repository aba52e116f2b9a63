import { word } from '../../filter/filter.ts';
import { countText } from '../duration.ts';
import { workersSeen } from '../figures.ts';
import { h } from '../html.ts';
import { Empty } from '../parts/empty.tsx';
import { Page } from '../parts/layout.tsx';
import { Ago, Since } from '../parts/moment.tsx';
import { Shown } from '../parts/shown.tsx';
import { TableHead } from '../parts/table-head.tsx';
import { Foreign } from '../parts/text.tsx';
import type { Visit } from '../visit.ts';

/** A heartbeat comes about every 5 seconds. */
const LATE_MS = 15_000;

/** The workers that are alive, as their rows say. */
export async function workersPage(visit: Visit) {
  const workers = await workersSeen(visit);
  const { links, nowMs } = visit;
  return (
    <Page visit={visit} title="Workers">
      {workers === undefined ? (
        <p class="notice is-bad">Counting the jobs that workers hold took more than 2 s.</p>
      ) : (
        <section class="card" aria-label="Workers">
          {workers.length === 0 ? (
            <Empty
              title="No worker is running"
              code={'const worker = createWorker(db, { queue, handlers: [send] });\nawait worker.run();'}
            >
              Jobs stay due until one starts.
            </Empty>
          ) : (
            <table class="rows">
              <TableHead
                columns={[
                  'Worker',
                  'Queues',
                  { number: 'Holds' },
                  { number: 'Seen' },
                  { number: 'Up for' },
                  'Liveness',
                ]}
              />
              <tbody>
                {workers.map(({ id, name, queues, holds, seenAt, startedAt, session }) => (
                  <tr id={`worker-${id}`} data-row>
                    <td>
                      <a class="row-link" href={links.jobs(`worker:${id}`)}>
                        <Shown visit={visit} field="worker" text={name} mono />
                      </a>
                      <span class="muted"> #{id}</span>
                    </td>
                    <td>
                      {queues.map((queue) => (
                        <a class="tag" href={links.jobs(word('queue', queue))}>
                          <Foreign text={queue} />
                        </a>
                      ))}
                    </td>
                    <td class="number" data-name="holds">
                      <a href={links.jobs(`worker:${id} state:running`)}>{countText(holds)}</a>
                    </td>
                    <td class={`number ${nowMs - seenAt.getTime() > LATE_MS ? 'bad' : ''}`} data-name="seen">
                      <Ago at={seenAt} nowMs={nowMs} />
                    </td>
                    <td class="number" data-name="up for">
                      <Since at={startedAt} nowMs={nowMs} />
                    </td>
                    <td data-name="liveness">{session ? 'session' : 'heartbeat'}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </section>
      )}
    </Page>
  );
}

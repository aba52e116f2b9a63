import { word } from '../../filter/filter.ts';
import { amountText } from '../duration.ts';
import { type Figures, figuresSeen } from '../figures.ts';
import { Fragment, h } from '../html.ts';
import { Card } from '../parts/card.tsx';
import { Empty } from '../parts/empty.tsx';
import { Page } from '../parts/layout.tsx';
import { Ago, Since } from '../parts/moment.tsx';
import { QueueTable } from '../parts/queue-table.tsx';
import { TableHead } from '../parts/table-head.tsx';
import { Foreign } from '../parts/text.tsx';
import type { Visit } from '../visit.ts';

/** The queues, and the kinds of the jobs in them. */
export async function queuesPage(visit: Visit) {
  const figures = await figuresSeen(visit);
  const { queues, kinds } = figures ?? { queues: [], kinds: [] };
  return (
    <Page visit={visit} title="Queues">
      <Counted figures={figures} nowMs={visit.nowMs} />
      {figures?.unreported ? <Unreported visit={visit} /> : null}
      <section class="card" aria-label="Queues">
        {queues.length === 0 ? (
          <Empty
            title="No queue is in use"
            code={'const worker = createWorker(db, { queue, handlers });\nawait worker.run();'}
          >
            A queue appears with its first job, or with the first worker that serves it.
          </Empty>
        ) : (
          <QueueTable visit={visit} queues={queues} />
        )}
      </section>
      {kinds.length === 0 ? null : (
        <Card id="kinds" title="Kinds">
          <table class="rows">
            <TableHead
              columns={[
                'Kind',
                'Queue',
                { number: 'due' },
                { number: 'running' },
                { number: 'scheduled' },
                { number: 'waiting' },
                { number: 'Lag' },
              ]}
            />
            <tbody>
              {kinds.map(({ queue, kind, due, running, scheduled, waiting, oldestDueAt, precision }) => (
                <tr>
                  <td>
                    <a href={visit.links.jobs(`${word('kind', kind)} ${word('queue', queue)}`)}>
                      <Foreign text={kind} mono />
                    </a>
                  </td>
                  <td data-name="queue">
                    <Foreign text={queue} />
                  </td>
                  <td class="number" data-name="due">
                    {amountText(due, precision)}
                  </td>
                  <td class="number" data-name="running">
                    {amountText(running, precision)}
                  </td>
                  <td class="number" data-name="scheduled">
                    {amountText(scheduled, precision)}
                  </td>
                  <td class="number" data-name="waiting">
                    {amountText(waiting, precision)}
                  </td>
                  <td class="number" data-name="lag">
                    <Since at={oldestDueAt} nowMs={visit.nowMs} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Card>
      )}
    </Page>
  );
}

/** Figures that are older than this say so. */
const OLD_MS = 30_000;

/** Says why there is no figure, or why it is not exact, or old. */
export function Counted({
  figures,
  nowMs,
}: {
  readonly figures: Figures | undefined;
  readonly nowMs: number;
}) {
  if (figures === undefined || figures.total.precision === 'unknown')
    return (
      <p class="notice is-bad">
        Counting the live jobs took more than 2 s, so there is no count. An old snapshot may keep dead rows
        from being removed: see Database.
      </p>
    );
  const { countedAt, total } = figures;
  if (total.precision !== 'exact')
    return (
      <p class="notice">
        Counting all live jobs takes more than 2 s:{' '}
        {total.precision === 'estimated'
          ? 'these are estimates by the planner.'
          : 'only the first 10,000 jobs of each queue are counted.'}
      </p>
    );
  if (nowMs - countedAt.getTime() < OLD_MS) return null;
  return (
    <p class="note">
      Counted <Ago at={countedAt} nowMs={nowMs} />. Counting uses 0.25 % of the time, so counts can be old.
    </p>
  );
}

/** Says that there are no rates, and who knows why. */
export function Unreported({ visit: { granted, links } }: { readonly visit: Visit }) {
  return (
    <p class="notice is-bad">
      The metrics of the workers could not be read: their table is missing or locked.
      {granted.whole ? (
        <>
          {' '}
          See <a href={links.to('/database')}>Database</a>.
        </>
      ) : null}
    </p>
  );
}

import { word } from '../../filter/filter.ts';
import { amountText } from '../duration.ts';
import type { QueueLine } from '../figures.ts';
import { h } from '../html.ts';
import type { Visit } from '../visit.ts';
import { ActionForm } from './action-form.tsx';
import { Ago, Since } from './moment.tsx';
import { TableHead } from './table-head.tsx';
import { Foreign } from './text.tsx';

const STATES = ['due', 'running', 'scheduled', 'waiting'] as const;

/** Queues, with what stands in them and how long the oldest due job waits. */
export function QueueTable({
  visit,
  queues,
}: {
  readonly visit: Visit;
  readonly queues: readonly QueueLine[];
}) {
  const { links, nowMs } = visit;
  return (
    <table class="rows">
      <TableHead
        columns={[
          'Queue',
          ...STATES.map((state) => ({ number: state })),
          { number: 'Lag' },
          { number: 'Workers' },
          { unseen: 'Actions' },
        ]}
      />
      <tbody>
        {queues.map(({ queue, pausedAt, workers, ...counts }) => (
          <tr id={`queue-${encodeURIComponent(queue)}`} data-row>
            <td>
              <a class="row-link" href={links.jobs(word('queue', queue))}>
                <Foreign text={queue} mono />
              </a>
              {pausedAt === undefined ? null : (
                <span class="badge">
                  paused <Ago at={pausedAt} nowMs={nowMs} />
                </span>
              )}
              {workers === 0 && counts.due > 0 ? <span class="badge">no worker</span> : null}
            </td>
            {STATES.map((state) => (
              <td class="number" data-name={state}>
                {counts.precision === 'unknown' ? (
                  <span class="muted">?</span>
                ) : counts[state] === 0 ? (
                  <span class="muted">0</span>
                ) : (
                  <a href={links.jobs(`${word('queue', queue)} state:${state}`)}>
                    {amountText(counts[state], counts.precision)}
                  </a>
                )}
              </td>
            ))}
            <td class="number" data-name="lag">
              <Since at={counts.oldestDueAt} nowMs={nowMs} />
            </td>
            <td class={`number ${workers === 0 && counts.due > 0 ? 'bad' : ''}`} data-name="workers">
              {workers}
            </td>
            <td class="number">
              {pausedAt === undefined ? (
                <ActionForm
                  visit={visit}
                  action="pause"
                  fields={{ queue }}
                  label="Pause"
                  of={`queue ${queue}`}
                />
              ) : (
                <ActionForm
                  visit={visit}
                  action="resume"
                  fields={{ queue }}
                  label="Resume"
                  of={`queue ${queue}`}
                  tone="main"
                />
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

import type { Executor, ScheduleRecord, Schedules } from '../../../index.ts';
import { word } from '../../filter/filter.ts';
import { durationText } from '../duration.ts';
import { numberOf } from '../form-fields.ts';
import { h } from '../html.ts';
import { ActionForm } from '../parts/action-form.tsx';
import { Empty } from '../parts/empty.tsx';
import { Page, SlowPage } from '../parts/layout.tsx';
import { Ago, At, Zone } from '../parts/moment.tsx';
import { Shown } from '../parts/shown.tsx';
import { TableHead } from '../parts/table-head.tsx';
import { Foreign } from '../parts/text.tsx';
import { FEW_ROWS_MS } from '../searches.ts';
import { isPlain, LOOK_MS, scopeName, type Visit } from '../visit.ts';

const PAGE = 50;
/** Further on, each page would read many names to pass them over. */
const MAX_PAGE = 1_000;
const TICKS = 3;

/** What fires by the clock. Pages have numbers, since `show` may hide the names that `list` goes by. */
export async function schedulesPage(visit: Visit, schedules: Schedules) {
  const { searches, viewer, granted, query } = visit;
  const number = Math.min(MAX_PAGE, Math.max(1, numberOf(query.get('page') ?? undefined) ?? 1));
  const name = JSON.stringify(['schedules', scopeName(visit), number]);
  const { queues } = granted.scope;
  const look = async (db: Executor) =>
    await schedules.listFrom(db, { queues, offset: (number - 1) * PAGE, limit: PAGE });
  const answer = await searches.at(viewer, name, LOOK_MS, look, FEW_ROWS_MS);
  if (answer === undefined) return <SlowPage visit={visit} title="Schedules" />;
  const { schedules: seen, nextCursor } = answer.value;
  return (
    <Page visit={visit} title="Schedules" foundAt={answer.at}>
      <section class="card" aria-label="Schedules">
        {seen.length === 0 && number > 1 ? (
          <Empty title="No more schedules" />
        ) : seen.length === 0 ? (
          <Empty
            title="No schedule yet"
            code={
              "await queue.schedules.set(tx, defineSchedule('nightly', { job: report, cron: '0 3 * * *' }));"
            }
          >
            A schedule enqueues a job repeatedly. Workers declare it, or a transaction sets it.
          </Empty>
        ) : (
          <table class="rows">
            <TableHead columns={['Schedule', 'Timing', 'Next', { number: 'Last' }, { unseen: 'Actions' }]} />
            <tbody>
              {seen.map((schedule) => (
                <Row visit={visit} schedule={schedule} ticks={schedules.nextTicks(schedule, TICKS)} />
              ))}
            </tbody>
          </table>
        )}
        <footer class="pages">
          {number > 1 && <a href={visit.links.to('/schedules')}>First page</a>}
          {nextCursor !== undefined && number < MAX_PAGE && (
            <a rel="next" href={visit.links.to('/schedules', { page: String(number + 1) })}>
              More
            </a>
          )}
        </footer>
        {seen.length > 0 && <Zone />}
      </section>
    </Page>
  );
}

interface RowProps {
  readonly visit: Visit;
  readonly schedule: ScheduleRecord;
  readonly ticks: readonly Date[];
}

function Row({ visit, schedule, ticks }: RowProps) {
  const { name, kind, queue, cron, every, timeZone, lastAt, pausedAt, declared } = schedule;
  const { links, nowMs } = visit;
  const plain = isPlain(visit, undefined, 'schedule', { text: name });
  return (
    <tr id={plain ? `schedule-${encodeURIComponent(name)}` : undefined} data-row>
      <td>
        <Shown visit={visit} field="schedule" text={name} mono />
        {pausedAt === null ? null : (
          <span class="badge">
            paused <Ago at={pausedAt} nowMs={nowMs} />
          </span>
        )}
        <div class="muted">
          <a class="row-link" href={links.jobs(`${word('kind', kind)} ${word('queue', queue)}`)}>
            <Foreign text={kind} mono />
          </a>{' '}
          · {declared ? 'declared in code' : 'set'}
        </div>
      </td>
      <td>
        <span class="mono">{cron ?? `every ${durationText(every ?? 0)}`}</span>
        {cron === null ? null : (
          <div class="muted">
            <Foreign text={timeZone} />
          </div>
        )}
      </td>
      <td>
        {ticks.length === 0 ? (
          <span class="muted">{pausedAt === null ? 'never again' : '–'}</span>
        ) : (
          <ol class="ticks">
            {ticks.map((tick, index) => (
              <li>{index === 0 ? <Ago at={tick} nowMs={nowMs} /> : <At at={tick} />}</li>
            ))}
          </ol>
        )}
      </td>
      <td class="number" data-name="last">
        <Ago at={lastAt} nowMs={nowMs} />
      </td>
      <td class="number">
        {/* A form says which schedule it is about, so there is none where the name is not shown. */}
        {plain ? <ScheduleActions visit={visit} schedule={schedule} /> : null}
      </td>
    </tr>
  );
}

function ScheduleActions({ visit, schedule: { name, pausedAt } }: Omit<RowProps, 'ticks'>) {
  return (
    <div class="actions">
      <ActionForm
        visit={visit}
        action="schedule"
        path="run-schedule"
        fields={{ name }}
        label="Run now"
        of={name}
      />
      {pausedAt === null ? (
        <ActionForm
          visit={visit}
          action="schedule"
          path="pause-schedule"
          fields={{ name }}
          label="Pause"
          of={name}
        />
      ) : (
        <ActionForm
          visit={visit}
          action="schedule"
          path="resume-schedule"
          fields={{ name }}
          label="Resume"
          of={name}
          tone="main"
        />
      )}
    </div>
  );
}

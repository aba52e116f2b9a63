import type { Percentiles, QueueRates } from '../../../index.ts';
import { countFinished, databaseTime, type Finished, type FinishedMinute } from '../../../internal.ts';
import { agoText, amountText, countText, durationText } from '../duration.ts';
import { figuresSeen, MINUTES } from '../figures.ts';
import { type Child, Fragment, h } from '../html.ts';
import { Card } from '../parts/card.tsx';
import { Chart } from '../parts/chart.tsx';
import { Empty } from '../parts/empty.tsx';
import { Findings } from '../parts/findings.tsx';
import { Page } from '../parts/layout.tsx';
import { Since, Zone } from '../parts/moment.tsx';
import { QueueTable } from '../parts/queue-table.tsx';
import { LOOK_MS, scopeName, type Visit } from '../visit.ts';
import { findingsOf, vitalsOf } from './database.tsx';
import { Counted, Unreported } from './queues.tsx';

const BOUND = 50_000;

/** What one looks at first: how much there is to do, how it went in the last hour, and what is wrong. */
export async function overviewPage(visit: Visit) {
  const { links, nowMs, granted } = visit;
  const figures = await figuresSeen(visit);
  // Workers report once a minute: until the first of them has, the results say more.
  const reported = figures?.rates?.totals.length ? figures.rates : undefined;
  const finished =
    figures === undefined || reported === undefined
      ? await lastHour(visit)
      : { minutes: reportedHour(reported), since: undefined, asOf: figures.countedAt };
  const { total, queues = [], workers } = figures ?? {};
  const vitals = granted.whole ? await vitalsOf(visit) : [];
  const found = granted.whole ? [...vitals, ...(await findingsOf(visit, vitals))] : [];
  const findings = found.filter(({ severity }) => severity === 'error' || severity === 'warning');
  const hour = finished && sumOf(finished.minutes);
  const read = finished?.since && durationText(finished.asOf.getTime() - finished.since.getTime());
  const stretch = read === undefined ? 'the last hour' : `the last ${read}`;
  const within = read === undefined ? 'in the last hour' : `in ${stretch}: older results were not read`;
  const counted = (state: 'due' | 'running' | 'scheduled') =>
    total && amountText(total[state], total.precision);
  // A workflow that waits for a signal is live, too.
  const live = total && total.due + total.running + total.scheduled + total.waiting;
  const isCounted = total?.precision === 'exact' && figures?.retrying !== undefined;
  const idle = live === 0 && isCounted && hour?.ended === 0 && read === undefined;
  return (
    <Page visit={visit} title="Overview" charts>
      <Counted figures={figures} nowMs={nowMs} />
      {figures?.unreported ? <Unreported visit={visit} /> : null}
      <ul class="tiles">
        <Tile name="Due" href={links.jobs('state:due')} value={counted('due')}>
          {total?.oldestDueAt === undefined ? (
            'age unknown'
          ) : total.oldestDueAt === null ? (
            'none waiting'
          ) : (
            <>
              oldest for <Since at={total.oldestDueAt} nowMs={nowMs} />
            </>
          )}
        </Tile>
        <Tile name="Running" href={links.jobs('state:running')} value={counted('running')}>
          {workers === undefined ? 'now' : `${workers} ${workers === 1 ? 'worker' : 'workers'}`}
        </Tile>
        <Tile name="Scheduled" href={links.jobs('state:scheduled')} value={counted('scheduled')}>
          for later
        </Tile>
        <Tile
          name="Retrying"
          href={links.jobs('state:retrying')}
          value={figures?.retrying && amountText(figures.retrying.jobs, figures.retrying.precision)}
          bad={(figures?.retrying?.jobs ?? 0) > 0}
        >
          failed, waiting to retry
        </Tile>
        <Tile name="Completed" href={links.jobs('state:completed')} value={hour && countText(hour.completed)}>
          {within}
        </Tile>
        <Tile
          name="Discarded"
          href={links.to('/errors', { hours: '1' })}
          value={hour && countText(hour.discarded)}
          bad={(hour?.discarded ?? 0) > 0}
        >
          {hour === undefined || hour.ended === 0
            ? within
            : `${shareText(hour.discarded / hour.ended)} of ${stretch}`}
        </Tile>
      </ul>
      {findings.length === 0 ? null : (
        <Card id="findings" title="Findings">
          <Findings visit={visit} findings={findings} />
        </Card>
      )}
      {finished === undefined ? (
        <p class="notice is-bad">Reading the results of the last hour took more than {LOOK_MS / 1000} s.</p>
      ) : idle ? null : (
        <Charts finished={finished} reported={reported !== undefined} nowMs={nowMs} />
      )}
      {finished === undefined || idle ? null : <Zone />}
      {idle ? (
        <section class="card">
          <Empty title="All quiet" code={'await queue.enqueue(tx, sendReceipt, { orderId: 1 });'}>
            No jobs are waiting, and none ended within the last hour.
          </Empty>
        </section>
      ) : queues.length === 0 ? null : (
        <Card id="queues" title="Queues">
          <QueueTable visit={visit} queues={queues} />
        </Card>
      )}
    </Page>
  );
}

interface TileProps {
  readonly name: string;
  readonly href: string;
  readonly value: string | undefined;
  readonly bad?: boolean;
  readonly children?: Child;
}

function Tile({ name, href, value, bad = false, children }: TileProps) {
  return (
    <li class={bad ? 'tile is-bad' : 'tile'}>
      <a href={href}>
        <span class="tile-name">{name}</span>
        <b>{value ?? '?'}</b>
        <span class="muted">{children}</span>
      </a>
    </li>
  );
}

/** What ended in the hour before a time by the database's clock. */
interface LastHour extends Finished {
  readonly asOf: Date;
}

interface ChartsProps {
  readonly finished: LastHour;
  /** Whether workers have reported them; otherwise they are read of the results. */
  readonly reported: boolean;
  readonly nowMs: number;
}

function Charts({ finished: { minutes, since, asOf }, reported, nowMs }: ChartsProps) {
  const byTime = new Map(minutes.map((minute) => [minute.at.getTime() / 1_000, minute]));
  // The hour that was read, which may be ten minutes ago; reports are read apart, so they may be younger.
  const last = Math.floor(asOf.getTime() / 60_000) * 60;
  const end = Math.max(last, ...byTime.keys());
  const times = Array.from({ length: MINUTES }, (_, index) => end - (MINUTES - 1 - index) * 60);
  // Of the minute in which reading has stopped a part is known.
  const known = since === undefined ? 0 : since.getTime() / 1_000;
  const values = (of: (minute: FinishedMinute | undefined) => number | null) =>
    times.map((time) => (time < known ? null : of(byTime.get(time))));
  const read =
    since === undefined
      ? 'Of the jobs whose results are kept.'
      : `Of the newest ${countText(BOUND)} results, which go back to ${agoText(since, nowMs)}.`;
  return (
    <div class="charts">
      <Chart
        id="throughput"
        title="Jobs per minute"
        note={reported ? 'Reported by workers once a minute.' : read}
        unit="jobs"
        shape="bars"
        times={times}
        series={[
          { label: 'completed', tone: 'good', values: values((minute) => minute?.completed ?? 0) },
          { label: 'discarded', tone: 'bad', values: values((minute) => minute?.discarded ?? 0) },
          { label: 'cancelled', tone: 'plain', values: values((minute) => minute?.cancelled ?? 0) },
        ]}
      />
      <Chart
        id="waits"
        title="Wait until claimed"
        unit="ms"
        shape="lines"
        times={times}
        series={[
          { label: 'p95', tone: 'later', values: values((minute) => minute?.waitMs?.p95 ?? null) },
          { label: 'p50', tone: 'busy', values: values((minute) => minute?.waitMs?.p50 ?? null) },
        ]}
      />
      <Chart
        id="runs"
        title="Run time"
        unit="ms"
        shape="lines"
        times={times}
        series={[
          { label: 'p95', tone: 'later', values: values((minute) => minute?.runMs?.p95 ?? null) },
          { label: 'p50', tone: 'busy', values: values((minute) => minute?.runMs?.p50 ?? null) },
        ]}
      />
    </div>
  );
}

async function lastHour(visit: Visit): Promise<LastHour | undefined> {
  const { settings, granted, looks } = visit;
  const slice = { scope: granted.scope, minutes: MINUTES, bound: BOUND };
  return await looks.at(
    `hour ${scopeName(visit)}`,
    LOOK_MS,
    async (db) => ({
      ...(await countFinished(db, settings.queue.tables, slice)),
      asOf: await databaseTime(db, settings.queue.tables),
    }),
    'slow',
  );
}

/** The same as workers have reported it, also of jobs whose results are not kept. */
function reportedHour({ totals }: QueueRates): FinishedMinute[] {
  const spread = (times: Percentiles | undefined) =>
    times === undefined ? null : { p50: times.p50Ms, p95: times.p95Ms };
  return totals.map(({ at, completed, discarded, cancelled, wait, run }) => ({
    ...{ at, completed, discarded, cancelled },
    ...{ waitMs: spread(wait), runMs: spread(run) },
  }));
}

function sumOf(minutes: readonly FinishedMinute[]) {
  const sum = (name: 'completed' | 'discarded' | 'cancelled') =>
    minutes.reduce((total, minute) => total + minute[name], 0);
  const [completed, discarded, cancelled] = [sum('completed'), sum('discarded'), sum('cancelled')];
  return { completed, discarded, cancelled, ended: completed + discarded + cancelled };
}

function shareText(share: number): string {
  const percent = share * 100;
  return percent > 0 && percent < 1 ? 'less than 1 %' : `${Math.round(percent)} %`;
}

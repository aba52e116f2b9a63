import {
  COUNTED_RETRYING,
  type CountedRetrying,
  countDiscarded,
  countRetrying,
  type ErrorGroup,
  groupErrors,
  groupRetrying,
  type RetryingGroup,
} from '../../../internal.ts';
import { word } from '../../filter/filter.ts';
import { countText } from '../duration.ts';
import { Fragment, h } from '../html.ts';
import { AskingForm } from '../parts/action-form.tsx';
import { Empty } from '../parts/empty.tsx';
import { Causes } from '../parts/history.tsx';
import { Page } from '../parts/layout.tsx';
import { Ago } from '../parts/moment.tsx';
import { ShownText } from '../parts/shown.tsx';
import { Foreign } from '../parts/text.tsx';
import { LOOK_MS, revealed, scopeName, type Visit } from '../visit.ts';

/** How many of the newest discarded jobs are grouped. */
export const ERRORS_BOUND = 10_000;
const GROUPS = 100;
/** The times over which discarded jobs are grouped. */
const HOURS: Readonly<Record<string, string>> = {
  '1': 'the last hour',
  '6': 'the last 6 hours',
  '24': 'the last 24 hours',
  '168': 'the last 7 days',
};
const DEFAULT_HOURS = '24';

/** Jobs that were discarded, and those that are tried again, grouped by what they failed with. */
export async function errorsPage(visit: Visit) {
  const { settings, granted, looks, links, query } = visit;
  const { tables } = settings.queue;
  const asked = query.get('hours') ?? DEFAULT_HOURS;
  const hours = Object.hasOwn(HOURS, asked) ? asked : DEFAULT_HOURS;
  const stretch = HOURS[hours] ?? '';
  const slice = { scope: granted.scope, hours: Number(hours), bound: ERRORS_BOUND };
  const found = await looks.at(`errors ${hours} ${scopeName(visit)}`, LOOK_MS, async (db) => ({
    groups: await groupErrors(db, tables, { ...slice, limit: GROUPS }),
    read: await countDiscarded(db, tables, slice),
  }));
  const failed = { scope: granted.scope, bound: COUNTED_RETRYING, limit: GROUPS };
  const retrying = await looks.at(`retrying causes ${scopeName(visit)}`, LOOK_MS, async (db) => ({
    groups: await groupRetrying(db, tables, failed),
    counted: await countRetrying(db, tables, granted.scope),
  }));
  // In a scope there may be none although not all were read.
  const isCut = found !== undefined && found.read.read >= ERRORS_BOUND;
  return (
    <Page visit={visit} title="Errors">
      <nav aria-label="Time">
        <ul class="chips">
          {Object.entries(HOURS).map(([each, text]) => (
            <li>
              <a
                href={links.to('/errors', { hours: each })}
                aria-current={each === hours ? 'true' : undefined}
              >
                {text}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      {found === undefined ? (
        <p class="notice is-bad">
          The database took more than {LOOK_MS / 1000} s to read the discarded jobs of {stretch}.
        </p>
      ) : found.groups.length === 0 && !isCut ? (
        <section class="card">
          <Empty
            title={`Nothing was discarded in ${stretch}`}
            code={"return fail('the address does not exist'); // discards the job at once"}
          >
            A job is discarded when its last attempt has failed, or its error cannot be retried.
          </Empty>
        </section>
      ) : (
        <>
          <p class="lead">
            {howMany(found.read.jobs, found.groups.length)}{' '}
            {!isCut || found.read.since === undefined ? (
              `in ${stretch}.`
            ) : (
              <>
                among the newest {countText(ERRORS_BOUND)} discarded jobs, which go back to{' '}
                <Ago at={found.read.since} nowMs={visit.nowMs} />.
              </>
            )}
          </p>
          <ul class="groups">
            {found.groups.map((group) => (
              <Group visit={visit} group={group} most={found.groups[0]?.jobs ?? 1} hours={Number(hours)} />
            ))}
          </ul>
        </>
      )}
      <Retrying visit={visit} found={retrying} />
    </Page>
  );
}

/** Such as: 12 discarded jobs with 3 causes. */
function howMany(jobs: number, causes: number) {
  return (
    <>
      <b>{countText(jobs)}</b> discarded {jobs === 1 ? 'job' : 'jobs'}
      {causes === 0 ? null : (
        <>
          {' with '}
          <b>{causes}</b>
          {causes === GROUPS ? ' or more' : ''} {causes === 1 ? 'cause' : 'causes'}
        </>
      )}
    </>
  );
}

interface RetryingProps {
  readonly visit: Visit;
  readonly found:
    | { readonly groups: readonly RetryingGroup[]; readonly counted: CountedRetrying }
    | undefined;
}

/** What jobs failed with that are tried again. */
function Retrying({ visit, found }: RetryingProps) {
  const { links, nowMs } = visit;
  if (found === undefined)
    return (
      <p class="notice is-bad">
        The database took more than {LOOK_MS / 1000} s to read the jobs that are tried again. Look at Database
        for a missing index.
      </p>
    );
  const { groups, counted } = found;
  if (groups.length === 0 && !counted.isLeast) return null;
  const jobs = counted.kinds.reduce((sum, kind) => sum + kind.jobs, 0);
  return (
    <section aria-labelledby="retrying-title">
      <h2 id="retrying-title">Retrying</h2>
      <p class="lead">
        <b>{countText(jobs)}</b> {jobs === 1 ? 'job has' : 'jobs have'} failed and{' '}
        {jobs === 1 ? 'waits' : 'wait'} for another attempt
        {counted.isLeast ? `: of all that have failed ${countText(COUNTED_RETRYING)} were read` : ''}.
      </p>
      <ul class="groups">
        {groups.map((group) => (
          <li class="card group" id={`retrying-${group.sampleId}`} data-row>
            <Share jobs={group.jobs} most={groups[0]?.jobs ?? 1} />
            <div class="cause-text">
              <Cause visit={visit} group={group} state="retrying" />
              <p class="muted">
                next attempt <Ago at={group.nextAt} nowMs={nowMs} /> ·{' '}
                <a class="row-link" href={links.job(group.sampleId)}>
                  newest #{group.sampleId}
                </a>
              </p>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Group({
  visit,
  group,
  most,
  hours,
}: {
  readonly visit: Visit;
  readonly group: ErrorGroup;
  readonly most: number;
  readonly hours: number;
}) {
  const { links, nowMs } = visit;
  const { queue, kind, name, jobs, firstAt, lastAt, sampleId, seenAt, newest, own } = group;
  const sample = { id: sampleId, kind, queue, own };
  const shownName = revealed(visit, sample, 'errorName', { text: name });
  return (
    <li class="card group" id={`cause-${sampleId}`} data-row>
      <Share jobs={jobs} most={most} />
      <div class="cause-text">
        <Cause visit={visit} group={group} state="discarded" />
        <p class="muted">
          first <Ago at={firstAt} nowMs={nowMs} /> · last <Ago at={lastAt} nowMs={nowMs} /> ·{' '}
          <a class="row-link" href={links.job(sampleId)}>
            newest #{sampleId}
          </a>
        </p>
      </div>
      <AskingForm
        visit={visit}
        action="redrive"
        path="redrive-cause"
        fields={{
          newest: newest.join(' '),
          asof: seenAt.getTime(),
          hours,
        }}
        label="Redrive this group"
        of={`: ${kind}, ${shownName ?? 'hidden'}`}
        tone="main"
        question={`${countText(jobs)} ${jobs === 1 ? 'job is' : 'jobs are'} due again, with all attempts.`}
      />
    </li>
  );
}

/** How many jobs a group has, and as a part of those of the largest one. */
function Share({ jobs, most }: { readonly jobs: number; readonly most: number }) {
  return (
    <div class="count">
      <b>{countText(jobs)}</b>
      <span class="muted">{jobs === 1 ? 'job' : 'jobs'}</span>
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" class="share" aria-hidden="true">
        <rect width="100" height="4" class="fill-track" />
        <rect width={Math.max(2, (jobs / most) * 100).toFixed(1)} height="4" class="fill-bad" />
      </svg>
    </div>
  );
}

/** What the jobs of a group are, and what they failed with. */
function Cause({
  visit,
  group,
  state,
}: {
  readonly visit: Visit;
  readonly group: Pick<ErrorGroup, 'queue' | 'kind' | 'name' | 'message' | 'sampleId' | 'own'>;
  readonly state: 'discarded' | 'retrying';
}) {
  const { links } = visit;
  const { queue, kind, name, sampleId, own } = group;
  const sample = { id: sampleId, kind, queue, own };
  const shownName = revealed(visit, sample, 'errorName', { text: name });
  const message = revealed(visit, sample, 'error', {
    text: group.message,
    cut: group.message.length === 500,
  });
  const [first = '', ...causes] = (message ?? '').split(' [cause] ');
  return (
    <>
      <p class="from">
        <a href={links.jobs(`${word('kind', kind)} ${word('queue', queue)} state:${state}`)}>
          <Foreign text={kind} mono />
        </a>
        <span class="muted">
          {' in '}
          <Foreign text={queue} />
        </span>
      </p>
      <p class="message">
        <b>
          <ShownText text={shownName} mono />
        </b>{' '}
        <ShownText text={message === null ? null : first} />
      </p>
      <Causes texts={causes} />
    </>
  );
}

import { type ErrorGroup, groupErrors } from '../../queries/group-errors.ts';
import { countText } from '../duration.ts';
import { word } from '../filter.ts';
import { AskingForm } from '../parts/action-form.tsx';
import { Empty } from '../parts/empty.tsx';
import { Hidden } from '../parts/job-table.tsx';
import { Page } from '../parts/layout.tsx';
import { Ago } from '../parts/moment.tsx';
import { Foreign } from '../parts/text.tsx';
import { LOOK_MS, revealed, scopeName, type Visit } from '../visit.ts';

/** How many of the newest results are grouped. */
export const ERRORS_BOUND = 20_000;
const GROUPS = 100;

/** Discarded jobs, grouped by what they failed with. */
export async function errorsPage(visit: Visit) {
  const { settings, granted, looks } = visit;
  const groups = await looks.at(`errors ${scopeName(visit)}`, LOOK_MS, (db) =>
    groupErrors(db, settings.queue.tables, { scope: granted.scope, bound: ERRORS_BOUND, limit: GROUPS }),
  );
  const jobs = (groups ?? []).reduce((sum, group) => sum + group.jobs, 0);
  return (
    <Page visit={visit} title="Errors">
      {groups === undefined ? (
        <p class="notice is-bad">
          The database took more than {LOOK_MS / 1000} s to read the newest results.
        </p>
      ) : groups.length === 0 ? (
        <section class="card">
          <Empty
            title="Nothing was discarded"
            code={"return fail('the address does not exist'); // discards the job at once"}
          >
            A job is discarded when its last attempt has failed, or its error cannot be retried.
          </Empty>
        </section>
      ) : (
        <>
          <p class="lead">
            <b>{countText(jobs)}</b> discarded {jobs === 1 ? 'job' : 'jobs'} with <b>{groups.length}</b>{' '}
            {groups.length === 1 ? 'cause' : 'causes'}, among the newest {countText(ERRORS_BOUND)} results.
          </p>
          <ul class="groups">
            {groups.map((group) => (
              <Group visit={visit} group={group} most={groups[0]?.jobs ?? 1} />
            ))}
          </ul>
        </>
      )}
    </Page>
  );
}

function Group({
  visit,
  group,
  most,
}: {
  readonly visit: Visit;
  readonly group: ErrorGroup;
  readonly most: number;
}) {
  const { links, nowMs } = visit;
  const { queue, kind, name, cause, jobs, firstAt, lastAt, sampleId, seenAt } = group;
  const sample = { id: sampleId, kind, queue, own: {} };
  const message = revealed(visit, sample, 'error', {
    text: group.message,
    cut: group.message.length === 500,
  });
  const [first = '', ...causes] = (message ?? '').split(' [cause] ');
  return (
    <li class="card group" id={`cause-${sampleId}`} data-row>
      <div class="count">
        <b>{countText(jobs)}</b>
        <span class="muted">{jobs === 1 ? 'job' : 'jobs'}</span>
        <svg viewBox="0 0 100 4" preserveAspectRatio="none" class="share" aria-hidden="true">
          <rect width="100" height="4" class="fill-track" />
          <rect width={Math.max(2, (jobs / most) * 100).toFixed(1)} height="4" class="fill-bad" />
        </svg>
      </div>
      <div class="cause-text">
        <p class="from">
          <a href={links.jobs(`${word('kind', kind)} state:discarded`)}>
            <Foreign text={kind} mono />
          </a>
          <span class="muted">
            {' in '}
            <Foreign text={queue} />
          </span>
        </p>
        <p class="message">
          <b>
            <Foreign text={name} mono />
          </b>{' '}
          {message === null ? <Hidden /> : <Foreign text={first} />}
        </p>
        {causes.map((text) => (
          <p class="cause">
            <span class="muted">caused by</span> <Foreign text={text} />
          </p>
        ))}
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
        fields={{ queue, kind, name, cause, asof: seenAt.getTime() }}
        label="Redrive this group"
        of={`: ${kind}, ${name}`}
        tone="main"
        question={`${countText(jobs)} ${jobs === 1 ? 'job is' : 'jobs are'} due again, with all attempts.`}
      />
    </li>
  );
}

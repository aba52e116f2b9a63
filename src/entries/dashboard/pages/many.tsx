import type { ManyAction } from '../../../internal.ts';
import { countText } from '../duration.ts';
import { backOf, type Fields, JOBS } from '../form-fields.ts';
import { Fragment, h } from '../html.ts';
import { type Chosen, type Counted, chosenOf, countChosen, RIGHTS } from '../many-jobs.ts';
import { Empty } from '../parts/empty.tsx';
import { Page, SlowPage } from '../parts/layout.tsx';
import { Foreign } from '../parts/text.tsx';
import type { Progress } from '../stretch.ts';
import { LOOK_MS, may, type Visit } from '../visit.ts';

const TITLES: Readonly<Record<ManyAction, string>> = {
  cancel: 'Cancel jobs',
  redrive: 'Redrive jobs',
  'run-now': 'Run jobs now',
};

const QUESTIONS: Readonly<Record<ManyAction, string>> = {
  cancel:
    'They end as cancelled and never run. Running handlers are told to stop. Jobs that are enqueued from ' +
    'now on are not affected.',
  redrive: 'They are due again at once, with all their attempts.',
  'run-now': 'They are due now. Limits and pauses still apply.',
};

/** Asks whether to do something with many jobs, and says with how many. */
export async function manyPage(visit: Visit) {
  const { query, links } = visit;
  const q = query.get('q') ?? '';
  const chosen = chosenOf(visit, {
    action: query.get('action') ?? '',
    of: query.get('of') ?? '',
    q,
    ids: query.getAll('id'),
  });
  const back = links.to('/jobs', { q });
  if (chosen === undefined || !may(visit, RIGHTS[chosen.action])) {
    return (
      <Page visit={visit} title="Nothing selected">
        <section class="card">
          <Empty title="No job is selected">
            Select jobs, or all that match the filter. <a href={back}>Back to the jobs</a>
          </Empty>
        </section>
      </Page>
    );
  }
  const counted = await countChosen(visit, chosen);
  if (counted === undefined) return <SlowPage visit={visit} title={TITLES[chosen.action]} />;
  return (
    <Page visit={visit} title={TITLES[chosen.action]}>
      <section class="card many">
        {counted.jobs === 0 ? (
          <Empty title="No matching jobs">
            The action applies to none of these jobs, or another user was faster.{' '}
            <a href={back}>Back to the jobs</a>
          </Empty>
        ) : (
          <Question visit={visit} chosen={chosen} counted={counted} back={back} />
        )}
      </section>
    </Page>
  );
}

interface QuestionProps {
  readonly visit: Visit;
  readonly chosen: Chosen;
  readonly counted: Counted;
  readonly back: string;
}

function Question({
  visit,
  chosen: { action, ids },
  counted: { jobs, until, asOf, q },
  back,
}: QuestionProps) {
  const label = jobs === undefined ? 'all of them' : jobsText(jobs);
  const fields = {
    of: ids === undefined ? 'all' : 'selected',
    q,
    ids: (ids ?? []).join(' '),
    until: String(until),
    asof: String(asOf),
    ...(jobs !== undefined && { total: String(jobs) }),
    back: JOBS,
  };
  return (
    <>
      <p class="number-of">
        <b>{jobs === undefined ? '?' : countText(jobs)}</b>{' '}
        {ids !== undefined
          ? `of ${jobsText(ids.length)} selected`
          : jobs === 1
            ? 'job matches'
            : 'jobs match'}
      </p>
      {ids !== undefined ? null : q === '' ? (
        <p>No filter is set: these are all jobs in your scope.</p>
      ) : (
        <p class="code wrap">
          <Foreign text={q} />
        </p>
      )}
      {jobs === undefined ? (
        <p class="notice is-bad">Counting took more than {LOOK_MS / 1000} s, so their number is unknown.</p>
      ) : null}
      <p>{QUESTIONS[action]}</p>
      <form method="post" action={visit.links.to(`/actions/${action}-many`)} class="actions">
        <HiddenFields fields={fields} />
        <button type="submit" class={`button is-${action === 'cancel' ? 'danger' : 'main'}`}>
          {action === 'cancel' ? 'Cancel' : action === 'redrive' ? 'Redrive' : 'Run now:'} {label}
        </button>
        <a class="button" href={back}>
          Back
        </a>
      </form>
    </>
  );
}

/** What is still to be done of many jobs, after a request has done a part of it. */
export interface GoingOn {
  readonly path: string;
  readonly progress: Progress;
  /** How many there are; `undefined` where they have not been counted. */
  readonly total: number | undefined;
  /** What the next request must know beside what this one was sent. */
  readonly kept: Fields;
}

/** Shows the progress. The script goes on by itself; without it the user presses the button. */
export function goingOnPage(visit: Visit, { path, progress, total, kept }: GoingOn, fields: Fields) {
  const { tried, done, after } = progress;
  const next = { ...fields, ...kept, tried: String(tried), done: String(done), after: String(after) };
  return (
    <Page visit={visit} title="In progress">
      <section class="card many">
        <p class="number-of" role="status">
          <b>{countText(done)}</b>{' '}
          {total === undefined
            ? `${done === 1 ? 'job is' : 'jobs are'} done, more are left`
            : `of ${jobsText(Math.max(total, tried))} done`}
        </p>
        {total === undefined ? null : (
          <progress max={Math.max(total, tried)} value={tried} aria-label="Progress" />
        )}
        {tried > done ? (
          <p>
            {jobsText(tried - done)} skipped: the action does not apply, another user was faster, or the
            database refused it.
          </p>
        ) : null}
        <form method="post" action={visit.links.to(`/actions/${path}`)} class="actions" data-goes-on>
          <HiddenFields fields={next} />
          <button type="submit" class="button is-main">
            Continue
          </button>
          <a class="button" href={visit.links.back(backOf(fields))}>
            Stop here
          </a>
        </form>
        <p class="muted">
          Jobs that are done stay done when you close this page. The others are not changed.
        </p>
      </section>
    </Page>
  );
}

function HiddenFields({ fields }: { readonly fields: Fields }) {
  return (
    <>
      {Object.entries(fields).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
    </>
  );
}

function jobsText(count: number): string {
  return `${countText(count)} ${count === 1 ? 'job' : 'jobs'}`;
}

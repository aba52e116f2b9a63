import type { ManyAction } from '../../../internal.ts';
import { type Filter, MAX_PINNED, STATES, withWord } from '../../filter/filter.ts';
import { completionsOf } from '../completions.ts';
import { type Cursor, cursorOf, cursorWords, findJobs, type JobsFound } from '../find-jobs.ts';
import { h } from '../html.ts';
import { RIGHTS } from '../many-jobs.ts';
import { Empty } from '../parts/empty.tsx';
import { excerptOf, JobTable } from '../parts/job-table.tsx';
import { Page } from '../parts/layout.tsx';
import { askWith, type Found, UNFIT, UnfitValueError } from '../searches.ts';
import { LOOK_MS, may, scopeName, type Visit } from '../visit.ts';
import { filterOfVisit } from '../visit-filter.ts';

/** Jobs of every state, newest first, behind one filter bar. */
export async function jobsPage(visit: Visit) {
  const q = (visit.query.get('q') ?? '').slice(0, MAX_PINNED + 1).trim();
  const filter = filterOfVisit(visit, q);
  const cursor = cursorOf(visit.query);
  const search: Search =
    filter.problems.length > 0 ? { problems: filter.problems } : await find(visit, filter, cursor);
  const { problems, found } = search;
  const completions = problems.length > 0 ? [] : await completionsOf(visit, q, filter);
  return (
    <Page visit={visit} title="Jobs" foundAt={found?.at}>
      <FilterBar visit={visit} q={q} filter={filter} completions={completions} />
      {problems.map((problem) => (
        <p class="notice is-bad" role="alert">
          {problem}
        </p>
      ))}
      {found === undefined ? null : (
        <Jobs visit={visit} q={q} cursor={cursor} filter={filter} found={found.value} />
      )}
    </Page>
  );
}

interface JobsProps {
  readonly visit: Visit;
  readonly q: string;
  readonly cursor: Cursor | undefined;
  readonly filter: Filter;
  readonly found: JobsFound;
}

function Jobs({ visit, q, cursor, filter, found: { jobs, next, end, order, covers } }: JobsProps) {
  const { links } = visit;
  return (
    <section class="card" aria-label="Jobs found">
      {jobs.length > 0 ? (
        <form method="get" action={links.to('/jobs/many')} class="choose">
          <JobTable visit={visit} jobs={jobs} selectable={LABELS.some(([of]) => may(visit, RIGHTS[of]))} />
          <Bulk visit={visit} q={q} state={filter.search.state} />
        </form>
      ) : q === '' && cursor === undefined ? (
        <Empty title="No job yet" code={'await queue.enqueue(tx, sendReceipt, { orderId: 1 });'}>
          A job exists once the transaction that enqueues it has committed.
        </Empty>
      ) : (
        <Empty title="No jobs match this filter">Try fewer words, or look at every state.</Empty>
      )}
      <footer class="pages">
        {cursor === undefined ? null : <a href={links.to('/jobs', { q })}>First page</a>}
        {next === undefined ? null : (
          <a rel="next" href={links.to('/jobs', { q, ...cursorWords(next) })}>
            {order === undefined ? 'Older' : 'Next'}
          </a>
        )}
        {order === undefined || jobs.length === 0 ? null : <span class="muted">{order}</span>}
        {end === undefined ? null : (
          <span class="muted">
            {covers} There may be more jobs.{' '}
            <a href={links.to('/jobs', { q, ...cursorWords(end) })}>Continue searching</a>
          </span>
        )}
      </footer>
    </section>
  );
}

interface BulkProps {
  readonly visit: Visit;
  readonly q: string;
  readonly state: Filter['search']['state'];
}

const LABELS: readonly (readonly [action: ManyAction, label: string])[] = [
  ['cancel', 'Cancel'],
  ['redrive', 'Redrive'],
  ['run-now', 'Run now'],
];

/** Whether something of this can be done with jobs of this state. */
function fits(action: ManyAction, state: Filter['search']['state']): boolean {
  if (state === undefined) return true;
  if (action === 'redrive') return state === 'discarded' || state === 'cancelled';
  if (action === 'run-now') return state === 'scheduled' || state === 'retrying';
  return state !== 'completed' && state !== 'discarded' && state !== 'cancelled';
}

/** What can be done with many jobs at once; a page then says with how many, and asks. */
function Bulk({ visit, q, state }: BulkProps) {
  const actions = LABELS.filter(([action]) => may(visit, RIGHTS[action]) && fits(action, state));
  if (actions.length === 0) return null;
  return (
    <fieldset class="bulk">
      <legend class="unseen">Bulk actions</legend>
      <input type="hidden" name="q" value={q} />
      <label>
        <input type="radio" name="of" value="selected" checked /> selected <b data-selected />
      </label>
      <label>
        <input type="radio" name="of" value="all" /> {q === '' ? 'all jobs' : 'all that match this filter'}
      </label>
      {actions.map(([action, label]) => (
        <button type="submit" name="action" value={action} class="button">
          {label}…
        </button>
      ))}
    </fieldset>
  );
}

interface FilterBarProps {
  readonly visit: Visit;
  readonly q: string;
  readonly filter: Filter;
  /** Whole filters that go on from this one. */
  readonly completions: readonly string[];
}

function FilterBar({ visit, q, filter, completions }: FilterBarProps) {
  const { links } = visit;
  const chosen = filter.search.state;
  return (
    <form class="filter" method="get" action={links.to('/jobs')}>
      <input
        type="search"
        name="q"
        id="filter"
        value={q}
        aria-label="Filter jobs"
        placeholder="kind:send-receipt payload.orderId:42 after:2h"
        autocomplete="off"
        list="completions"
        spellcheck={false}
        enterkeyhint="search"
      />
      <datalist id="completions">
        {completions.map((completion) => (
          <option value={completion} />
        ))}
      </datalist>
      <button type="submit" class="button is-main">
        Filter
      </button>
      <ul class="chips" aria-label="States">
        <li>
          <a
            href={links.jobs(withWord(filter.words, 'state', undefined))}
            aria-current={chosen === undefined ? 'true' : undefined}
          >
            all
          </a>
        </li>
        {STATES.map((state) => (
          <li>
            <a
              href={links.jobs(withWord(filter.words, 'state', state))}
              class={`is-${state}`}
              aria-current={chosen === state ? 'true' : undefined}
            >
              {state}
            </a>
          </li>
        ))}
      </ul>
    </form>
  );
}

/** What a search came to: jobs, or why there are none to show. */
interface Search {
  readonly found?: Found<JobsFound>;
  readonly problems: readonly string[];
}

async function find(visit: Visit, filter: Filter, cursor: Cursor | undefined): Promise<Search> {
  const { searches, viewer, settings, granted } = visit;
  const words = filter.words.map(({ text }) => text).join(' ');
  const name = JSON.stringify(['jobs', scopeName(visit), words, cursorWords(cursor)]);
  const wanted = { search: filter.search, scope: granted.scope, cursor, excerpt: excerptOf(visit) };
  try {
    const found = await askWith(wanted, () =>
      searches.at(viewer, name, LOOK_MS, (db) => findJobs(db, settings.queue.tables, wanted)),
    );
    if (found !== undefined) return { found, problems: [] };
    const slow = `The database took more than ${LOOK_MS / 1000} s. Narrow the filter by an id or a queue.`;
    return { problems: [slow] };
  } catch (error) {
    if (error instanceof UnfitValueError) return { problems: [UNFIT] };
    throw error;
  }
}

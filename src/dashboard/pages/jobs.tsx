import { browseJobs } from '../../queries/browse-jobs.ts';
import type { ManyAction } from '../../queries/find-many.ts';
import { findSearchEnd } from '../../queries/find-search-end.ts';
import { ownColumnsOf } from '../../schema/own-columns.ts';
import type { JobLine } from '../../sql/job-line.ts';
import type { JobState } from '../../sql/job-record.ts';
import { completionsOf } from '../completions.ts';
import { type Filter, filterOf, MAX_FILTER, STATES, withWord } from '../filter.ts';
import { within } from '../looks.ts';
import { RIGHTS } from '../many-jobs.ts';
import { Empty } from '../parts/empty.tsx';
import { excerptOf, JobTable } from '../parts/job-table.tsx';
import { Page } from '../parts/layout.tsx';
import { may, type Visit } from '../visit.ts';

const PAGE = 50;
/** How many rows of live jobs, and of results, a page reads at most. */
const BOUND = 100_000;
const BROWSE_MS = 5_000;

interface Found {
  readonly jobs: readonly JobLine[];
  readonly next: number | undefined;
  /** The id down to which was searched, where that was not to the end. */
  readonly end: number | undefined;
}

/** Jobs of every state, newest first, behind one filter bar. */
export async function jobsPage(visit: Visit) {
  const q = (visit.query.get('q') ?? '').slice(0, MAX_FILTER + 1).trim();
  const own = ownColumnsOf(visit.settings.queue.tables.queueJobs);
  const filter = filterOf(q, own, visit.settings.show === undefined);
  const before = cursorOf(visit.query.get('before'));
  const found = filter.problems.length > 0 ? undefined : await find(visit, filter, before);
  const completions = await completionsOf(visit, q, filter);
  return (
    <Page visit={visit} title="Jobs">
      <FilterBar visit={visit} q={q} filter={filter} completions={completions} />
      {filter.problems.map((problem) => (
        <p class="notice is-bad" role="alert">
          {problem}
        </p>
      ))}
      {found === undefined ? (
        filter.problems.length > 0 ? null : (
          <p class="notice is-bad">
            The database took more than {BROWSE_MS / 1000} s. Narrow the filter by an id or a queue.
          </p>
        )
      ) : (
        <Jobs visit={visit} q={q} before={before} filter={filter} found={found} />
      )}
    </Page>
  );
}

interface JobsProps {
  readonly visit: Visit;
  readonly q: string;
  readonly before: number | undefined;
  readonly filter: Filter;
  readonly found: Found;
}

function Jobs({ visit, q, before, filter, found: { jobs, next, end } }: JobsProps) {
  const { links } = visit;
  return (
    <section class="card" aria-label="Jobs found">
      {jobs.length > 0 ? (
        <form method="get" action={links.to('/jobs/many')} class="choose">
          <JobTable visit={visit} jobs={jobs} selectable={LABELS.some(([of]) => may(visit, RIGHTS[of]))} />
          <Bulk visit={visit} q={q} state={filter.search.state} />
        </form>
      ) : q === '' && before === undefined ? (
        <Empty title="No job yet" code={'await queue.enqueue(tx, sendReceipt, { orderId: 1 });'}>
          A job exists once the transaction that enqueues it has committed.
        </Empty>
      ) : (
        <Empty title="No job fits this filter">Try fewer words, or look at every state.</Empty>
      )}
      <footer class="pages">
        {before === undefined ? null : <a href={links.to('/jobs', { q })}>Newest</a>}
        {next === undefined ? null : (
          <a rel="next" href={links.to('/jobs', { q, before: next })}>
            Older
          </a>
        )}
        {end === undefined ? null : (
          <span class="muted">
            Searched the newest {BOUND.toLocaleString('en')} of each table, down to #{end}.{' '}
            <a href={links.to('/jobs', { q, before: end })}>Search on</a>
          </span>
        )}
      </footer>
    </section>
  );
}

interface BulkProps {
  readonly visit: Visit;
  readonly q: string;
  readonly state: JobState | undefined;
}

const LABELS: readonly (readonly [action: ManyAction, label: string])[] = [
  ['cancel', 'Cancel'],
  ['redrive', 'Redrive'],
  ['run-now', 'Run now'],
];

/** Whether something of this can be done with jobs of this state. */
function fits(action: ManyAction, state: JobState | undefined): boolean {
  if (state === undefined) return true;
  if (action === 'redrive') return state === 'discarded' || state === 'cancelled';
  if (action === 'run-now') return state === 'scheduled';
  return state !== 'completed' && state !== 'discarded' && state !== 'cancelled';
}

/** What can be done with many jobs at once; a page then says with how many, and asks. */
function Bulk({ visit, q, state }: BulkProps) {
  const actions = LABELS.filter(([action]) => may(visit, RIGHTS[action]) && fits(action, state));
  if (actions.length === 0) return null;
  return (
    <fieldset class="bulk">
      <legend class="unseen">With many jobs</legend>
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

async function find(visit: Visit, filter: Filter, before: number | undefined): Promise<Found | undefined> {
  const { settings, granted } = visit;
  const { tables } = settings.queue;
  return await within(settings.db, settings.queue.tables, BROWSE_MS, async (db) => {
    const page = { search: filter.search, scope: granted.scope, before, limit: PAGE + 1, bound: BOUND };
    const jobs = await browseJobs(db, tables, { ...page, excerpt: excerptOf(visit) });
    if (jobs.length > PAGE) return { jobs: jobs.slice(0, PAGE), next: jobs[PAGE - 1]?.id, end: undefined };
    const filtered = filter.words.length > 0 || !granted.whole;
    const end = filtered ? await findSearchEnd(db, tables, { before, bound: BOUND }) : undefined;
    // What lies below was read of one of the tables only; the next search finds it with the rest.
    return { jobs: end === undefined ? jobs : jobs.filter(({ id }) => id >= end), next: undefined, end };
  });
}

function cursorOf(text: string | null): number | undefined {
  const cursor = Number(text ?? '');
  return Number.isSafeInteger(cursor) && cursor > 0 ? cursor : undefined;
}

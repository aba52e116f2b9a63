import type { QueueTables } from '../../core/schema/index.ts';
import type { Executor, LiveState } from '../../index.ts';
import {
  type Band,
  browseByRunAt,
  browseJobs,
  countOfGroup,
  countRetrying,
  FIRST_PLACE,
  faultPoint,
  findBands,
  findReadEnd,
  findSearchEnd,
  isBefore,
  isCitus,
  isFinalState,
  isLiveState,
  type JobLine,
  type JobPlace,
  type JobScope,
  type JobSearch,
  type LiveSource,
  type ResultSource,
} from '../../internal.ts';
import { countText } from './duration.ts';
import { numberOf } from './form-fields.ts';

/** How many jobs a page has. */
const PAGE = 50;
/** How many rows of live jobs, and of results, a page reads at most where no index finds those that fit. */
const BOUND = 100_000;
/**
 * How many live jobs it reads in the order in which they are due, of all bands together. Those that run are
 * the first of theirs, as claims take them.
 */
const IN_ORDER: Readonly<Record<LiveState, number>> = {
  running: 3_000,
  due: 20_000,
  scheduled: 20_000,
  waiting: 20_000,
};
/** Above this many, jobs of groups are searched by id: reading each band would read too little of it. */
const MAX_BANDS = 400;
/** An index finds all live jobs of a group that has no more. */
const MAX_OF_GROUP = 10_000;

/** Where a page begins: below an id, or behind a job in the order in which jobs are due. */
export type Cursor = { readonly before: number } | { readonly after: JobPlace };

/** A page of jobs. */
export interface JobsFound {
  readonly jobs: readonly JobLine[];
  /** The page after this full one. */
  readonly next: Cursor | undefined;
  /** Where the search has stopped before it found enough, or the end. */
  readonly end: Cursor | undefined;
  /** In which order they are, where that is not by id. */
  readonly order: string | undefined;
  /** What the search has looked at until `end`. */
  readonly covers: string;
}

export interface JobsToFind {
  readonly search: JobSearch;
  readonly scope: JobScope;
  readonly cursor: Cursor | undefined;
  /** How many characters of a payload to read. */
  readonly excerpt: number;
}

/** The words of a URL that say where a page begins. */
export function cursorWords(cursor: Cursor | undefined): Record<'before' | 'after', string | undefined> {
  if (cursor === undefined) return { before: undefined, after: undefined };
  if ('before' in cursor) return { before: String(cursor.before), after: undefined };
  const { runUs, id } = cursor.after;
  const word = Object.entries(INFINITE).find(([, time]) => time === runUs)?.[0];
  return { before: undefined, after: `${word ?? runUs}-${id}` };
}

/** The times of jobs that wait, and of those that were due before every other. */
const INFINITE = { never: Number.POSITIVE_INFINITY, always: Number.NEGATIVE_INFINITY };

/** The cursor that such words name; `undefined` for anything else. */
export function cursorOf(query: URLSearchParams): Cursor | undefined {
  const before = numberOf(query.get('before') ?? undefined);
  if (before !== undefined && before > 0) return { before };
  // The last times that PostgreSQL knows have 19 digits.
  const [, us, idText] = /^(-?\d{1,19}|never|always)-(\d{1,16})$/.exec(query.get('after') ?? '') ?? [];
  const id = numberOf(idText);
  if (id === undefined) return undefined;
  return { after: { runUs: us === 'never' || us === 'always' ? INFINITE[us] : BigInt(us ?? 0), id } };
}

/**
 * A page of the jobs that fit a search: by an index where one finds them, otherwise among the newest.
 *
 * **Under concurrency.** Plain reads of one snapshot, as `within` runs them. On a driver without transactions
 * each has its own, and a page may then pass over jobs where others end meanwhile.
 */
export async function findJobs(db: Executor, tables: QueueTables, find: JobsToFind): Promise<JobsFound> {
  const bands = await bandsOf(db, tables, find);
  const { state } = find.search;
  if (bands !== undefined && isLiveState(state)) return await findByRunAt(db, tables, find, { state, bands });
  return await findById(db, tables, find);
}

/** The bands that have all live jobs in the state that is sought; `undefined` where they are not used. */
async function bandsOf(
  db: Executor,
  tables: QueueTables,
  { search, scope, cursor }: JobsToFind,
): Promise<readonly Band[] | undefined> {
  const { id, uniqueKey, state, queue, group } = search;
  const byId = id !== undefined || uniqueKey !== undefined || !isLiveState(state);
  if (byId || (cursor !== undefined && 'before' in cursor)) return undefined;
  // There it would take a statement for each shard.
  if (await isCitus(db, tables)) return undefined;
  const queues = queue === undefined ? scope.queues : [queue];
  const bands = await findBands(db, tables, { queues, group, limit: MAX_BANDS + 1 });
  const many = [true, false].some(
    (grouped) => bands.filter((band) => (band.group !== null) === grouped).length > MAX_BANDS,
  );
  return many ? undefined : bands;
}

async function findByRunAt(
  db: Executor,
  tables: QueueTables,
  { search, scope, cursor, excerpt }: JobsToFind,
  { state, bands }: { readonly state: LiveState; readonly bands: readonly Band[] },
): Promise<JobsFound> {
  const after = cursor !== undefined && 'after' in cursor ? cursor.after : FIRST_PLACE;
  const bound = Math.ceil(IN_ORDER[state] / Math.max(1, bands.length));
  const read = { state, bands, after, bound };
  const found = await browseByRunAt(db, tables, { ...read, search, scope, excerpt, limit: PAGE + 1 });
  // Beyond the end of one band there may be jobs of it that were not read. Only an end within the page
  // matters.
  const until = found.length > PAGE ? found.at(-1)?.place : undefined;
  const end = await findReadEnd(db, tables, { ...read, until });
  const seen = found.filter(({ place }) => end === undefined || !isBefore(end, place));
  const jobs = seen.slice(0, PAGE);
  const last = jobs.at(-1)?.place;
  return {
    jobs: jobs.map(({ job }) => job),
    next: seen.length > PAGE && last !== undefined ? { after: last } : undefined,
    end: seen.length > PAGE || end === undefined ? undefined : { after: end },
    order: ORDERS[state],
    covers: `Looked at up to ${countText(IN_ORDER[state])} live jobs in this order.`,
  };
}

const ORDERS: Readonly<Record<LiveState, string>> = {
  due: 'Longest due first.',
  running: 'Earliest due first.',
  scheduled: 'Next due first.',
  waiting: 'Oldest first.',
};

async function findById(
  db: Executor,
  tables: QueueTables,
  { search, scope, cursor, excerpt }: JobsToFind,
): Promise<JobsFound> {
  const before = cursor !== undefined && 'before' in cursor ? cursor.before : undefined;
  const sources = await sourcesOf(db, tables, search);
  const { live, results } = sources;
  const page = { search, scope, before, excerpt, live, results, bound: BOUND };
  const found = await browseJobs(db, tables, { ...page, limit: PAGE + 1 });
  await faultPoint('jobs: browsed');
  const end = await endOf(db, tables, { search, scope, before, sources, full: found[PAGE]?.id });
  // What lies below was read of one of the tables only; the next search finds it with the rest.
  const seen = end === undefined ? found : found.filter((job) => job.id >= end);
  const jobs = seen.slice(0, PAGE);
  const last = jobs.at(-1)?.id;
  return {
    jobs,
    next: seen.length > PAGE && last !== undefined ? { before: last } : undefined,
    end: seen.length > PAGE || end === undefined ? undefined : { before: end },
    order: undefined,
    covers: coversOf(sources, search),
  };
}

interface PageById extends Pick<JobsToFind, 'search' | 'scope'> {
  readonly before: number | undefined;
  readonly sources: Sources;
  /** The job after those of a full page. */
  readonly full: number | undefined;
}

/** The id down to which both tables were read; `undefined` where that is all of them, or the whole page. */
async function endOf(
  db: Executor,
  tables: QueueTables,
  { search, scope, before, sources, full }: PageById,
): Promise<number | undefined> {
  const { state, id } = search;
  // A full page of one table was read as far as it goes.
  if (id !== undefined || (full !== undefined && state !== undefined)) return undefined;
  const of = {
    live: sources.live === 'newest' && !isFinalState(state),
    ended: !isLiveState(state) && state !== 'retrying',
  };
  if (!(of.live || of.ended) || isEverything(search, scope)) return undefined;
  const sought = sources.results === 'sought' ? search : undefined;
  return await findSearchEnd(db, tables, { before, above: full, bound: BOUND, of, sought });
}

interface Sources {
  readonly live: LiveSource;
  readonly results: ResultSource;
}

function coversOf({ live, results }: Sources, { uniqueKey }: JobSearch): string {
  const newest = `the newest ${countText(BOUND)}`;
  if (live === 'newest' && results === 'newest') return `Searched ${newest} of each table.`;
  const those = results === 'newest' ? '' : uniqueKey === undefined ? ' of this group' : ' with this key';
  const jobs = live === 'newest' ? `${newest} live jobs` : 'all live jobs';
  return `Searched ${jobs}, and ${newest} results${those}.`;
}

async function sourcesOf(db: Executor, tables: QueueTables, search: JobSearch): Promise<Sources> {
  const { id, uniqueKey, group, state } = search;
  const isKeyed = uniqueKey !== undefined || group !== undefined;
  if (id !== undefined || !(isKeyed || state === 'retrying')) return { live: 'newest', results: 'newest' };
  // It joins no table with itself but by the queue.
  if (await isCitus(db, tables)) return { live: 'newest', results: 'newest' };
  return {
    live: isFinalState(state) ? 'newest' : await liveSourceOf(db, tables, search),
    results: isKeyed ? 'sought' : 'newest',
  };
}

async function liveSourceOf(
  db: Executor,
  tables: QueueTables,
  { uniqueKey, group }: JobSearch,
): Promise<LiveSource> {
  if (uniqueKey !== undefined) return 'key';
  // Where there are more, many of them are among the newest.
  if (group === undefined) return (await countRetrying(db, tables)).isLeast ? 'newest' : 'failed';
  const jobs = await countOfGroup(db, tables, { group, most: MAX_OF_GROUP + 1 });
  // Of a larger group there are many among the newest.
  return jobs > MAX_OF_GROUP ? 'newest' : 'group';
}

/** Whether every job fits, so that a page that is not full is the last one. */
function isEverything({ payload, own, ...search }: JobSearch, scope: JobScope): boolean {
  const isWhole = scope.queues === undefined && scope.own.length === 0;
  const words = Object.values(search).filter((value) => value !== undefined);
  return isWhole && words.length === 0 && payload.length === 0 && own.length === 0;
}

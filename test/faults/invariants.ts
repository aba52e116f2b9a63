import { type CountedResult, wrongCounts } from './counts.ts';
import { single, ticking } from './fixtures/ledger-jobs.ts';
import type { Fleet } from './fleet.ts';
import { hasNoEffect, isExactlyOnce, type Ledger } from './ledger.ts';
import type { ProcessEntry } from './run-log.ts';

interface ResultRow extends CountedResult {
  readonly kind: string;
  readonly state: string;
  readonly output: unknown;
}

interface EffectRow {
  readonly n: number;
  readonly job_id: string;
  readonly fence: number;
}

/** So many of one sort are listed. */
const MAX_LISTED = 5;

/**
 * Everything that the queue has promised and not kept, once it has come to rest: in words, one line each. Empty when
 *
 * - each committed enqueue has ended in a result, and each rolled-back one never ran;
 * - no two workers were told that their end of a job is written, none unless the result bears its fence, and none that it has put back
 *   a job which another had begun before its own attempt had ended (no stale settle);
 * - the effect of a `complete(tx)` is there exactly once, under the fence of the result, and every other effect at least once;
 * - no two handlers have begun under the same fence of a job (one holder), and none after its job had ended;
 * - each worker that lives knows every end that it has written, and was told that it has lost only what another has claimed;
 * - no attempt is spent without a handler that began, but for those that may be when workers or servers are lost;
 * - no process has ended that nobody killed.
 *
 * @param options `takeovers`: how often another server took over, or the same one began again
 */
export async function violations(
  ledger: Ledger,
  fleet: Fleet,
  { takeovers = 0 }: { readonly takeovers?: number } = {},
): Promise<string[]> {
  const entries = fleet.entries();
  const books = await readBooks(ledger);
  const { results, jobOf } = books;
  const resultOf = new Map(results.map((result) => [Number(result.job_id), result]));
  const killed = new Set(fleet.killedAtMs.keys());
  const counts = wrongCounts({ entries, results, killed, takeovers });
  return [
    ...few(
      'a commit was acknowledged and is gone',
      [...ledger.acknowledged].filter((n) => !jobOf.has(n)),
    ),
    ...wrongInBooks(books),
    ...few(
      'a rolled-back enqueue ran',
      entries.filter(({ n }) => n !== undefined && ledger.rolledBack.has(n)).map(({ n }) => n),
    ),
    ...wrongRuns(entries, resultOf),
    ...few('an end that its worker does not know', counts.untold),
    ...few('told that it was lost, and nobody had claimed it', counts.notLost),
    ...few('attempts spent that never began', counts.overspent),
    ...(await unexpectedEnds(fleet)),
  ];
}

/**
 * What of this the tables alone show: that the jobs, their results, the books and the effects agree. It holds also where a failover has
 * undone commits, of which the processes' logs still tell.
 */
export async function wrongBooks(ledger: Ledger): Promise<string[]> {
  return wrongInBooks(await readBooks(ledger));
}

interface Books {
  readonly results: readonly ResultRow[];
  readonly effects: readonly EffectRow[];
  /** By the number of the enqueue. */
  readonly jobOf: ReadonlyMap<number, number>;
}

async function readBooks(ledger: Ledger): Promise<Books> {
  const results = await ledger.rows<ResultRow>(
    `select job_id, kind, state, (fence - floor(extract(epoch from created_at) * 1000))::int as fence, attempt, worker_id, output from queue_results
     where kind <> '${ticking.kind}'`,
  );
  const enqueued = await ledger.rows<{ n: number; job_id: string }>('select n, job_id from ledger_enqueued');
  const effects = await ledger.rows<EffectRow>('select n, job_id, fence from ledger_effects');
  return { results, effects, jobOf: new Map(enqueued.map(({ n, job_id }) => [n, Number(job_id)])) };
}

function wrongInBooks({ results, effects, jobOf }: Books): string[] {
  const ended = new Set(results.map(({ job_id }) => Number(job_id)));
  const completed = results.filter(({ state }) => state === 'completed');
  return [
    ...few(
      'a committed enqueue has no result',
      [...jobOf.values()].filter((id) => !ended.has(id)),
    ),
    ...few('a result of no committed enqueue', withoutEnqueue(results, new Set(jobOf.values()))),
    ...few(
      'a job did not complete',
      results.filter((result) => !mayEndSo(result)).map(({ job_id, state }) => `${job_id} (${state})`),
    ),
    ...wrongOutputs(completed, jobOf),
    ...wrongEffects(completed, ofTheirJobs(effects, jobOf)),
  ];
}

/** A crash may spend the only attempt that a job has. */
function mayEndSo({ kind, state }: ResultRow): boolean {
  return state === 'completed' || (kind === single.kind && state === 'discarded');
}

function withoutEnqueue(results: readonly ResultRow[], ids: ReadonlySet<number>): string[] {
  return results.filter(({ job_id }) => !ids.has(Number(job_id))).map(({ job_id }) => job_id);
}

/** Every handler of the ledger's returns the number of its job. */
function wrongOutputs(results: readonly ResultRow[], jobOf: ReadonlyMap<number, number>): string[] {
  const wrong = results.filter(({ job_id, output }) => jobOf.get(Number(output)) !== Number(job_id));
  return few(
    "a result with another job's output",
    wrong.map(({ job_id, output }) => `${job_id} (${output})`),
  );
}

/** Without those of jobs whose enqueue a failover has undone: they had begun, and their ids may have come again. */
function ofTheirJobs(effects: readonly EffectRow[], jobOf: ReadonlyMap<number, number>): EffectRow[] {
  return effects.filter(({ n, job_id }) => jobOf.get(n) === Number(job_id));
}

function wrongEffects(results: readonly ResultRow[], effects: readonly EffectRow[]): string[] {
  const fencesOf = new Map<number, number[]>();
  for (const { job_id, fence } of effects) {
    const id = Number(job_id);
    fencesOf.set(id, [...(fencesOf.get(id) ?? []), fence]);
  }
  const wrong = results.flatMap(({ job_id, kind, fence }) => {
    const fences = fencesOf.get(Number(job_id)) ?? [];
    if (hasNoEffect(kind)) return [];
    const right = isExactlyOnce(kind) ? fences.length === 1 && fences[0] === fence : fences.includes(fence);
    return right ? [] : [`${kind} ${job_id}, which ended under fence ${fence}: [${fences}]`];
  });
  return few('the wrong effects', wrong);
}

function wrongRuns(entries: readonly ProcessEntry[], resultOf: ReadonlyMap<number, ResultRow>): string[] {
  const begun = entries.filter(({ event }) => event === 'begun').map(({ job, fence }) => `${job}/${fence}`);
  const settled = entries.filter(({ event }) => event === 'settled');
  const fenceOf = (job: number | undefined) => resultOf.get(job ?? 0)?.fence ?? 0;
  return [
    ...few('two holders under one fence', repeated(begun)),
    ...few('an end that was written twice', repeated(settled.map(({ job }) => job))),
    ...few(
      'a stale settle',
      settled
        .filter(({ job, fence }) => fence !== fenceOf(job))
        .map(({ job, fence, process }) => `${process} ended ${job}/${fence}, the result has ${fenceOf(job)}`),
    ),
    ...few('a stale settle', stalePutBacks(entries)),
    ...few(
      'a job that ran on after its end',
      entries
        .filter(
          ({ event, job, fence = 0 }) => event === 'begun' && resultOf.has(job ?? 0) && fence > fenceOf(job),
        )
        .map(({ job, fence }) => `${job}/${fence}`),
    ),
  ];
}

/**
 * Where a worker was told that it has put a job back although a later holder had begun it before the attempt had ended, and so before anything
 * was written about that. One that began between that end and the news of it says nothing: the answer may have come late, or was lost,
 * and the write repeated.
 */
function stalePutBacks(entries: readonly ProcessEntry[]): string[] {
  const begun = new Map<number | undefined, ProcessEntry[]>();
  const endedAtMs = new Map<string, number>();
  for (const entry of entries) {
    const { event, process, job, fence, atMs } = entry;
    if (event === 'begun') begun.set(job, [...(begun.get(job) ?? []), entry]);
    if (event === 'ended') endedAtMs.set(`${process} ${job}/${fence}`, atMs);
  }
  return entries
    .filter(({ event }) => event === 'rescheduled')
    .filter(({ process, job, fence = 0 }) => {
      const atMs = endedAtMs.get(`${process} ${job}/${fence}`) ?? Number.NEGATIVE_INFINITY;
      return begun.get(job)?.some((later) => (later.fence ?? 0) > fence && later.atMs < atMs);
    })
    .map(({ process, job, fence }) => `${process} put back ${job}/${fence}`);
}

async function unexpectedEnds(fleet: Fleet): Promise<string[]> {
  try {
    fleet.checkRunning();
    return [];
  } catch (error) {
    return [String(error)];
  }
}

/**
 * Where a handler began although another one for the same job, of a process that lived, had not come to its end: in words, one
 * line each. That is no broken promise, since only the holder counts; but where no worker was to be declared gone there must be none.
 */
export function overlaps(fleet: Fleet): string[] {
  const killedAtMs = fleet.killedAtMs;
  const running = new Map<number, Map<string, ProcessEntry>>();
  const found: string[] = [];
  for (const entry of fleet.entries()) {
    const { event, job, fence, process, atMs } = entry;
    if (job === undefined || (event !== 'begun' && event !== 'ended')) continue;
    const others = running.get(job) ?? new Map<string, ProcessEntry>();
    running.set(job, others);
    if (event === 'ended') {
      others.delete(`${process}/${fence}`);
      continue;
    }
    for (const other of others.values()) {
      if ((killedAtMs.get(other.process) ?? Number.POSITIVE_INFINITY) < atMs) continue;
      found.push(`${process} began ${job}/${fence} while ${other.process} ran ${job}/${other.fence}`);
    }
    others.set(`${process}/${fence}`, entry);
  }
  return few('two at once', found);
}

/**
 * Who has declared whom gone: in words, one line each. Where everybody lives and can come back in time, nobody must; an overlap alone
 * would not show it, since a worker that was declared gone while it held nothing loses nothing.
 */
export function declaredGone(fleet: Fleet): string[] {
  return fleet
    .entries()
    .flatMap(({ event, process, detail }) =>
      event === 'gone' ? [`${process} declared ${detail} gone`] : [],
    );
}

/** A line that names the first few, or none when there are none. */
function few(what: string, cases: readonly unknown[]): string[] {
  if (cases.length === 0) return [];
  const more = cases.length > MAX_LISTED ? ` and ${cases.length - MAX_LISTED} more` : '';
  return [`${what}: ${cases.slice(0, MAX_LISTED).join(', ')}${more}`];
}

function repeated<T>(values: readonly T[]): T[] {
  const seen = new Set<T>();
  return values.filter((value) => seen.has(value) || !seen.add(value));
}

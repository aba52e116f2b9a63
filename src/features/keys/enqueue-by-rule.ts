import { describeThrown } from '../../core/job/describe-error.ts';
import type { KeyRule } from '../../core/job/key-rule.ts';
import { mayBeDue, type NewJob } from '../../core/job/new-job.ts';
import { findStandingJobs } from '../../core/queries/enqueue/find-standing-jobs.ts';
import {
  type EnqueueResult,
  insertOrFind,
  type LimitedEnqueueResult,
  type RefusedEnqueueResult,
  untilAnswered,
} from '../../core/queue/enqueue/enqueue-jobs.ts';
import type { Insert } from '../../core/queue/enqueue/key-rules.ts';
import type { WakeUps } from '../../core/queue/enqueue/wake-ups.ts';
import type { QueueTables } from '../../core/schema/index.ts';
import { checkOpen, type Executor, sqlStateOf } from '../../core/sql/executor.ts';
import type { WakeUp } from '../../core/sql/wake-up.ts';
import { QueueError } from '../../errors.ts';
import type { ControlTables } from '../control/index.ts';
import { insertLimitedJobs } from './queries/insert-limited-jobs.ts';
import { insertTrailingJobs } from './queries/insert-trailing-jobs.ts';
import { insertWaitingJobs, type PutResult } from './queries/insert-waiting-jobs.ts';

/** What an enqueue of jobs that have a rule for their key uses of its queue. */
export interface RuleSettings {
  readonly tables: QueueTables;
  /** The table of the keys that outlive a job, if the queue was given it. */
  readonly keys: ControlTables['queueKeys'] | undefined;
  readonly wakeUps: WakeUps | undefined;
}

/** See `KeyRules`. */
export function insertingByRule(jobs: readonly NewJob[], settings: RuleSettings): Insert {
  const rule = sharedRule(jobs, settings);
  return (db, jobs) => enqueueByRule(db, settings, rule, jobs);
}

/**
 * The rule of all jobs of an enqueue: one statement follows one rule.
 *
 * @throws TypeError when they do not all have the same, or it needs a table that the queue was not given
 */
export function sharedRule(jobs: readonly NewJob[], { keys }: Pick<RuleSettings, 'keys'>): KeyRule {
  const [first] = jobs;
  const rule = first?.rule;
  if (
    first === undefined ||
    rule === undefined ||
    jobs.some((job) => settingsOf(job) !== settingsOf(first))
  ) {
    throw new TypeError(
      `enqueueMany('${first?.kind}'): all entries must have the same debounce, throttle, replace and ` +
        'unique; only keys and delayMs may differ. Make one call for each set, in one transaction',
    );
  }
  if (keys === undefined && (rule.type === 'throttle' || rule.type === 'period')) {
    const option = rule.type === 'throttle' ? 'throttle' : 'unique: { forMs }';
    throw new TypeError(
      `enqueue('${first.kind}'): ${option} needs a table. Write \`import { queueKeys } from ` +
        "'drizzle-queue/schema/control'` and `createQueue({ keys: queueKeys })`, and " +
        "`export * from 'drizzle-queue/schema/control'` in the schema file that drizzle-kit reads",
    );
  }
  return rule;
}

/** A rule as text, without its key. */
function settingsOf({ rule }: NewJob): string {
  return JSON.stringify({ ...rule, key: undefined });
}

/**
 * Inserts jobs that have a rule for their key. Jobs of one call with the same key count one after the other:
 * the last prevails where the rule replaces, the first where it refuses. Returns in input order.
 *
 * @param rule that of all of them
 */
export async function enqueueByRule(
  db: Executor,
  settings: RuleSettings,
  rule: KeyRule,
  jobs: readonly NewJob[],
): Promise<LimitedEnqueueResult[]> {
  const replaces = rule.type === 'debounce' || rule.type === 'replace' || isTrailing(rule);
  const { distinct, places } = distinctKeys(jobs, rule, replaces);
  const answers = await send(db, settings, rule, distinct);
  const seen = new Set<number>();
  return places.map((place): LimitedEnqueueResult => {
    const answer = answers[place];
    if (answer === undefined) throw new QueueError('The insert did not answer for each key');
    const first = !seen.has(place);
    seen.add(place);
    if (first || answer.id === undefined) return answer;
    const { id } = answer;
    if (replaces) return { id, duplicate: false, outcome: 'replaced' };
    return rule.type === 'waiting' ? { id, duplicate: true, outcome: 'duplicate' } : refused(rule);
  });
}

function refused({ type }: KeyRule): RefusedEnqueueResult {
  return type === 'throttle'
    ? { id: undefined, duplicate: false, outcome: 'throttled' }
    : { id: undefined, duplicate: true, outcome: 'duplicate' };
}

function isTrailing(rule: KeyRule): boolean {
  return rule.type === 'throttle' && rule.trailing;
}

/** One job for each key of a queue and kind, and for each given job which of them it is. */
function distinctKeys(
  jobs: readonly NewJob[],
  rule: KeyRule,
  replaces: boolean,
): { readonly distinct: NewJob[]; readonly places: number[] } {
  const distinct: NewJob[] = [];
  const found = new Map<string, number>();
  const places = jobs.map((job) => {
    const key = JSON.stringify([job.queue, job.kind, job.rule?.key]);
    const place = found.get(key);
    const first = place === undefined ? undefined : distinct[place];
    if (place === undefined || first === undefined) {
      found.set(key, distinct.length);
      return distinct.push(job) - 1;
    }
    if (replaces) distinct[place] = keepsTime(rule) ? { ...job, ...timeOf(first) } : job;
    return place;
  });
  return { distinct, places };
}

function keepsTime(rule: KeyRule): boolean {
  return isTrailing(rule) || (rule.type === 'replace' && rule.keepRunAt);
}

function timeOf({ delayMs, runAtMs }: NewJob): Pick<NewJob, 'delayMs' | 'runAtMs'> {
  return { delayMs, runAtMs };
}

async function send(
  db: Executor,
  { tables, keys, wakeUps }: RuleSettings,
  rule: KeyRule,
  jobs: readonly NewJob[],
): Promise<readonly LimitedEnqueueResult[]> {
  const notifying = async (
    jobs: readonly NewJob[],
    run: (wakeUp?: WakeUp) => Promise<PutResult>,
  ): Promise<PutResult['jobs']> => {
    checkOpen('enqueue', db); // As in enqueueJobs.
    if (wakeUps === undefined) return (await run()).jobs;
    const queues = jobs.filter(mayBeDue).map(({ queue }) => queue);
    const put = await wakeUps.allow(db, queues, async (wakeUp) => {
      const result = await run(wakeUp);
      return { ...result, ids: result.jobs.map((job) => job?.id) };
    });
    return put.jobs;
  };
  if (rule.type === 'waiting') {
    return await insertOrFind(jobs, {
      insert: async (jobs) =>
        (await notifying(jobs, (wakeUp) => insertWaitingJobs(db, tables, rule, jobs, wakeUp))).map(
          (put) => put?.id,
        ),
      find: (jobs) => findStandingJobs(db, tables, jobs),
    });
  }
  if (rule.type === 'debounce' || rule.type === 'replace') {
    const put = await notifying(jobs, (wakeUp) => insertWaitingJobs(db, tables, rule, jobs, wakeUp));
    return put.map(putAnswer);
  }
  // Checked with the rule.
  if (keys === undefined) throw new TypeError('The queue has no table of keys');
  const known = { tables, keys };
  try {
    if (rule.type === 'throttle' && rule.trailing) {
      // The job that one is to become may be claimed in between.
      return await untilAnswered('enqueue: the throttled job ended and was replaced', jobs, async (jobs) => {
        const put = await notifying(jobs, (wakeUp) =>
          insertTrailingJobs(db, known, rule.perMs, jobs, wakeUp),
        );
        return put.map((job) => job && putAnswer(job));
      });
    }
    const windowMs = rule.type === 'throttle' ? rule.perMs : rule.forMs;
    const put = await notifying(jobs, (wakeUp) => insertLimitedJobs(db, known, windowMs, jobs, wakeUp));
    return put.map((job) => (job === undefined ? refused(rule) : putAnswer(job)));
  } catch (error) {
    throw refusedByCitus(error, rule, jobs) ?? error;
  }
}

/** Only Citus says that it does not support something in these statements. */
const NOT_SUPPORTED = '0A000';
/** A prepared statement whose tables were changed meanwhile has the same state. */
const STALE_PLAN = 'cached plan must not change result type';

/** What to say where Citus cannot follow a rule; `undefined` when the error has another cause. */
function refusedByCitus(error: unknown, rule: KeyRule, jobs: readonly NewJob[]): QueueError | undefined {
  if (sqlStateOf(error) !== NOT_SUPPORTED) return undefined;
  const { message } = describeThrown(error);
  const [first] = jobs;
  if (first === undefined || message.includes(STALE_PLAN)) return undefined;
  if (isTrailing(rule)) {
    return new QueueError(
      `enqueue('${first.kind}'): Citus cannot throttle with trailing: true, because the statement reads ` +
        `what it writes (${message}). Leave out trailing, or use debounce`,
      { cause: error },
    );
  }
  const queues = new Set(jobs.map(({ queue }) => queue)).size;
  if (queues < 2) return undefined;
  const option = rule.type === 'throttle' ? 'throttle' : 'unique: { forMs }';
  return new QueueError(
    `enqueueMany('${first.kind}'): on Citus, entries with ${option} must all be of one queue, ` +
      `but these are of ${queues} queues (${message}). Make one call for each queue, in one transaction`,
    { cause: error },
  );
}

function putAnswer(put: PutResult['jobs'][number]): EnqueueResult {
  if (put === undefined) throw new QueueError('The insert returned no row');
  return { id: put.id, duplicate: false, outcome: put.isNew ? 'enqueued' : 'replaced' };
}

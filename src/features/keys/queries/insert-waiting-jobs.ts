import { type SQL, sql } from 'drizzle-orm';
import type { KeyRule } from '../../../core/job/key-rule.ts';
import type { NewJob } from '../../../core/job/new-job.ts';
import { COLUMNS, givenColumns, ownValues, woke } from '../../../core/queries/enqueue/insert-jobs.ts';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import { ownColumnsOf } from '../../../core/schema/own-columns.ts';
import { type Executor, queryRows } from '../../../core/sql/executor.ts';
import {
  anyInGroup,
  groupColumns,
  haveCosts,
  haveGroupColumns,
  notedGroups,
} from '../../../core/sql/grouped-jobs.ts';
import { jobRows } from '../../../core/sql/job-rows.ts';
import { newJobId } from '../../../core/sql/new-job-id.ts';
import { ownNames } from '../../../core/sql/own-values.ts';
import { quotedName } from '../../../core/sql/quoted-name.ts';
import type { WakeUp } from '../../../core/sql/wake-up.ts';

/** What becomes of a job whose key another one has that waits for its first claim. */
export type WaitingRule = Extract<KeyRule, { type: 'debounce' | 'replace' | 'waiting' }>;

export interface PutResult {
  /** In input order: the job that is in, and whether it is new; `undefined` for one that was refused. */
  readonly jobs: readonly ({ readonly id: number; readonly isNew: boolean } | undefined)[];
  /** The queues whose workers are notified when the transaction commits. */
  readonly woken: ReadonlySet<string>;
}

/**
 * Inserts jobs that have a key until their first claim, each with another key, in one statement. A job that
 * waits with the key takes the place of the new one: with all that this says, but for its id and the time of
 * its creation, or as it is, where it refuses the new one.
 *
 * **Under concurrency.** The unique index decides, and the claim clears the key. Against a claim: one that
 * came first has cleared the key, and a new job is inserted; a job that is being replaced is passed over by
 * claims until this transaction ends. So a job runs with what it said before or after, never with half of
 * both, and what was said after its claim is said by another job. Against another open transaction with the
 * key: waits for its end. Keys go in sorted order, so two bulk statements never deadlock.
 */
export async function insertWaitingJobs(
  db: Executor,
  tables: QueueTables,
  rule: WaitingRule,
  jobs: readonly NewJob[],
  wakeUp?: WakeUp,
): Promise<PutResult> {
  const rows = await queryRows(db, tables, insertWaitingJobsQuery(tables, rule, jobs, wakeUp));
  return putResult(jobs, rows);
}

/** The answer of a statement that returns `place`, `id`, `is_new` and `woke`. */
export function putResult(
  jobs: readonly NewJob[],
  rows: readonly Readonly<Record<string, unknown>>[],
): PutResult {
  const put = new Array<{ id: number; isNew: boolean } | undefined>(jobs.length).fill(undefined);
  const woken = new Set<string>();
  for (const row of rows) {
    const index = Number(row.place) - 1;
    put[index] = { id: newJobId(row.id), isNew: row.is_new === true };
    if (row.woke === true) woken.add(jobs[index]?.queue ?? '');
  }
  return { jobs: put, woken };
}

export function insertWaitingJobsQuery(
  tables: QueueTables,
  rule: WaitingRule,
  jobs: readonly NewJob[],
  wakeUp?: WakeUp,
): SQL {
  const grouped = anyInGroup(jobs);
  return sql`
    with numbered as materialized (
      select nextval(s.sequence) as id, o.*
      from ${idSequence(tables)} as s,
        (select * from (${jobRows(jobs, givenColumns(tables.queueJobs, jobs))}) as i order by place) as o
    )${putNumbered(tables, jobs, conflictOf(tables, rule, jobs), 'run_at', 'rule_key')}${
      grouped ? notedGroups(tables, 'put') : sql``
    }
    select n.place, i.id, i.id = n.id as is_new, ${
      wakeUp === undefined ? sql`null as woke` : woke(jobs, wakeUp)
    }
    from put as i
    join numbered as n on n.queue = i.queue and n.kind = i.kind and n.rule_key = i.waiting_key`;
}

/** The sequence of the ids, as `sequence`. */
export function idSequence({ queueJobs }: QueueTables): SQL {
  return sql`(select pg_get_serial_sequence(${quotedName(queueJobs)}, 'id')::regclass as sequence)`;
}

/**
 * One more CTE, `put`, which inserts the rows of the CTE `numbered`. A row with another id than the one that
 * was drawn for it is that of the job that waited.
 *
 * @param dueAt the column of `numbered` that says when a new job is due
 * @param key the column of `numbered` with the key by which it waits
 */
export function putNumbered(
  tables: QueueTables,
  jobs: readonly NewJob[],
  conflict: SQL,
  dueAt: 'run_at' | 'due_at',
  key: 'rule_key' | 'waiting_key',
): SQL {
  const { queueJobs } = tables;
  const own = givenColumns(queueJobs, jobs);
  const grouped = anyInGroup(jobs);
  const more = groupColumns(haveGroupColumns(jobs));
  const values = sql`${sql.raw(COLUMNS.replace('run_at', dueAt))}${more}`;
  return sql`,
    put as (
      insert into ${queueJobs} as old
        (id, ${sql.raw(COLUMNS)}${more}, waiting_key${ownNames(own)}) overriding system value
      select id, ${values}, ${sql.raw(key)}${ownValues(own)} from numbered
      order by queue, kind, ${sql.raw(key)}
      on conflict (queue, kind, waiting_key) where waiting_key is not null do ${conflict}
      returning id, queue, kind, waiting_key, run_at${grouped ? sql`, group_key` : sql``}
    )`;
}

function conflictOf(tables: QueueTables, rule: WaitingRule, jobs: readonly NewJob[]): SQL {
  if (rule.type === 'waiting') return sql`nothing`;
  if (rule.type === 'replace') return takingOver(tables, jobs, rule.keepRunAt ? undefined : NEW_TIME);
  const { maxWaitMs } = rule;
  if (maxWaitMs === null) return takingOver(tables, jobs, NEW_TIME);
  // Citus takes immutable functions only, and an interval is added to a time with a zone by a stable one.
  const latest = sql`(old.created_at at time zone 'UTC' + ${maxWaitMs}::float8 * interval '1 millisecond')
          at time zone 'UTC'`;
  return takingOver(tables, jobs, sql`least(${NEW_TIME}, ${latest})`);
}

const NEW_TIME = sql.raw('excluded.run_at');

/**
 * The job that waits becomes the new one. With a new fence: the attempt of a claim that was rolled back is
 * not settled on it.
 *
 * @param runAt its new time; `undefined`: it keeps its own
 */
export function takingOver(tables: QueueTables, jobs: readonly NewJob[], runAt: SQL | undefined): SQL {
  const taken = ['payload', 'priority', 'max_attempts', 'metadata'];
  if (haveGroupColumns(jobs)) taken.push('group_key', 'weight');
  // The job that waits may have a cost where none of these does.
  else if (haveCosts(tables)) taken.push('weight');
  taken.push(...ownColumnsOf(tables.queueJobs).map(({ name }) => name));
  return sql`update set fence = old.fence + 1,
        ${sql.raw(taken.map((name) => `${name} = excluded.${name}`).join(', '))}${
          runAt === undefined
            ? sql``
            : sql`,
        run_at = ${runAt}`
        }`;
}

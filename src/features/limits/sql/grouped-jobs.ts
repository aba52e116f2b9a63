import { type SQL, sql } from 'drizzle-orm';
import type { NewJob } from '../../../core/job/new-job.ts';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import {
  groupedQueues,
  groupingOf,
  groupTables,
  hasGroups,
  hasWeights,
  type LimitTables,
  NO_GROUP,
} from './grouping.ts';
import { insertNotes } from './note-groups.ts';

/**
 * The job with the group in which its queue has it, if that queue has groups.
 *
 * @throws TypeError when the job has a group, and its queue has no groups, or a weight, and it has no rates
 * either: no limit would hold
 */
export function inGroup(tables: QueueTables, job: NewJob): NewJob {
  const { group, weight, queue, kind } = job;
  if (groupingOf(tables, queue) !== undefined) return group === undefined ? { ...job, group: NO_GROUP } : job;
  if (group !== undefined) throw notGrouped(`enqueue('${kind}')`, 'group', queue);
  if (weight !== undefined && !hasWeights(tables, queue))
    throw notGrouped(`enqueue('${kind}')`, 'weight', queue);
  return job;
}

/** The same for all jobs of an enqueue. */
export function inGroups(tables: QueueTables, jobs: readonly NewJob[]): readonly NewJob[] {
  return hasGroups(tables) || haveGroupColumns(jobs) ? jobs.map((job) => inGroup(tables, job)) : jobs;
}

export function notGrouped(what: string, option: 'group' | 'weight', queue: string): TypeError {
  return new TypeError(
    `${what}: ${option} is for queues with groups${option === 'weight' ? ' or rates' : ''}, ` +
      `but '${queue}' has none in this process: ` +
      `give createQueue \`limits: limitsIn(control, { '${queue}': { groups: {} } })\`, ` +
      `or leave out the ${option}, also in the definition`,
  );
}

/** Whether some of the jobs are in a group. */
export function anyInGroup(jobs: readonly NewJob[]): boolean {
  return jobs.some(({ group }) => group !== undefined);
}

/** Whether some of the jobs are in a group, or have a weight. */
export function haveGroupColumns(jobs: readonly NewJob[]): boolean {
  return jobs.some(({ group, weight }) => group !== undefined || weight !== undefined);
}

/** For an `INSERT … SELECT` that sets them; nothing where no job is in a group or has a weight. */
export function groupColumns(given: boolean): SQL {
  return given ? sql`, group_key, weight` : sql``;
}

/** Whether the queue in this expression is one of those with groups. */
export function isGroupedQueue(tables: QueueTables, queue: SQL): SQL {
  return sql`${JSON.stringify(groupedQueues(tables))}::text::jsonb @> to_jsonb(${queue})`;
}

/**
 * An insert that notes for the claims, of each group among the rows of a CTE (with their `queue`, `group_key`
 * and `run_at`), at which times to look at it. It waits for nobody, and nobody for it.
 */
export function groupNotes(tables: QueueTables, rows: string): SQL {
  return insertNotes(
    known(groupTables(tables)),
    sql`
        select distinct g.queue, g.run_at as due_at, g.group_key from ${sql.raw(rows)} as g
        where g.group_key is not null`,
  );
}

/** {@link groupNotes} as one more CTE. */
export function notedGroups(tables: QueueTables, rows: string): SQL {
  return sql`,
    noted as (${groupNotes(tables, rows)}
    )`;
}

/** Only jobs of queues with groups are in one. */
function known(tables: LimitTables | undefined): LimitTables {
  if (tables === undefined) throw new TypeError('A job is in a group of tables that have none');
  return tables;
}

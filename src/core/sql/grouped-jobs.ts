import { type SQL, sql } from 'drizzle-orm';
import { NO_GROUP } from '../job/group.ts';
import type { NewJob } from '../job/new-job.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { contextOf, declaresGroups, groupsInAny } from './statement-context.ts';

/**
 * The job with the group in which its queue has it, if that queue has groups.
 *
 * @throws TypeError when the job has a group, and its queue has no groups, or a cost, and it has no rates
 * either: no limit would hold
 */
export function inGroup(tables: QueueTables, job: NewJob): NewJob {
  const { group, cost, queue, kind } = job;
  if (declaresGroups(tables, queue)) return group === undefined ? { ...job, group: NO_GROUP } : job;
  if (group !== undefined) throw notGrouped(`enqueue('${kind}')`, 'group', queue);
  if (cost !== undefined && !hasCosts(tables, queue)) throw notGrouped(`enqueue('${kind}')`, 'cost', queue);
  return job;
}

/** The same for all jobs of an enqueue. */
export function inGroups(tables: QueueTables, jobs: readonly NewJob[]): readonly NewJob[] {
  return groupsInAny(tables) !== undefined || haveGroupColumns(jobs)
    ? jobs.map((job) => inGroup(tables, job))
    : jobs;
}

export function notGrouped(what: string, option: 'group' | 'cost', queue: string): TypeError {
  return new TypeError(
    `${what}: ${option} is for queues with groups${option === 'cost' ? ' or rates' : ''}, ` +
      `but '${queue}' has none in this process: ` +
      `give createQueue \`limits: limitsIn(control, { '${queue}': { groups: 'fair' } })\`, ` +
      `or leave out the ${option}, also in the definition`,
  );
}

export function anyInGroup(jobs: readonly NewJob[]): boolean {
  return jobs.some(({ group }) => group !== undefined);
}

/** Whether some of the jobs are in a group, or have a cost. */
export function haveGroupColumns(jobs: readonly NewJob[]): boolean {
  return jobs.some(({ group, cost }) => group !== undefined || cost !== undefined);
}

/** For an `INSERT … SELECT` that sets them; nothing where no job is in a group or has a cost. */
export function groupColumns(given: boolean): SQL {
  return given ? sql`, group_key, weight` : sql``;
}

/** Whether the queue in this expression is one of those that have groups. */
export function isGroupedQueue(groupedQueues: ReadonlySet<string>, queue: SQL): SQL {
  return sql`${JSON.stringify([...groupedQueues])}::text::jsonb @> to_jsonb(${queue})`;
}

export function hasCosts(tables: QueueTables, queue: string): boolean {
  return contextOf(tables).extension?.queuesWithCosts.has(queue) ?? false;
}

export function haveCosts(tables: QueueTables): boolean {
  return (contextOf(tables).extension?.queuesWithCosts.size ?? 0) > 0;
}

/**
 * An insert that tells claims about the rows of a CTE (with their `queue`, `group_key` and `run_at`) that are
 * in groups. It waits for no other transaction, and no other transaction waits for it.
 */
export function groupNotes(tables: QueueTables, rows: string): SQL {
  const groups = groupsInAny(tables);
  if (groups === undefined) throw new TypeError('A job is in a group of tables that have none');
  return groups.tellOfTimes(rows);
}

/** {@link groupNotes} as one more CTE. */
export function notedGroups(tables: QueueTables, rows: string): SQL {
  return sql`,
    noted as (${groupNotes(tables, rows)}
    )`;
}

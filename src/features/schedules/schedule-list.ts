import { checkDefinition, type JobDefinition } from '../../core/job/definition.ts';
import { checkOptions, namesOf } from '../../core/job/known-options.ts';
import { checkInteger, checkText, MAX_NAME_BYTES } from '../../core/job/limits.ts';
import type { Executor } from '../../core/sql/executor.ts';
import { findSchedules, type SchedulesPage } from './queries/find-schedules.ts';
import { type ScheduleRecord, toScheduleRecord } from './schedule-record.ts';
import type { ScheduleTables } from './sql/schedule-tables.ts';

/** The filter of {@link Schedules.list}. */
export interface ScheduleFilter {
  /** Only schedules of this definition's kind. */
  job?: JobDefinition | undefined;
  /** Only schedules whose jobs go to these queues. @default all queues */
  queues?: readonly string[] | undefined;
  /** The `nextCursor` of the previous page. @default the first page */
  cursor?: string | undefined;
  /** 1–1,000 schedules a page. @default 50 */
  limit?: number | undefined;
}

const FILTER = namesOf<ScheduleFilter>({ job: true, queues: true, cursor: true, limit: true });

/** One page of schedules, by name. */
export interface ScheduleList {
  readonly schedules: ScheduleRecord[];
  /** For the next page; `undefined` on the last one. */
  readonly nextCursor: string | undefined;
}

/** One page of the schedules of some tables. @throws RangeError | TypeError before anything is sent */
export async function listSchedules(
  db: Executor,
  tables: ScheduleTables,
  filter: ScheduleFilter,
): Promise<ScheduleList> {
  checkOptions('schedules.list: filter', filter, FILTER);
  const limit = checkInteger('schedules.list: limit', filter.limit ?? 50, 1, 1_000);
  if (filter.job !== undefined) checkDefinition('schedules.list', filter.job);
  if (filter.cursor !== undefined) checkText('schedules.list: cursor', filter.cursor, MAX_NAME_BYTES);
  for (const name of filter.queues ?? [])
    checkText('schedules.list: the name of a queue', name, MAX_NAME_BYTES);
  const { job, queues, cursor } = filter;
  return await readSchedules(db, tables, { kind: job?.kind, queues, after: cursor, limit });
}

/** The same for checked values. */
export async function readSchedules(
  db: Executor,
  tables: ScheduleTables,
  { limit, ...page }: SchedulesPage,
): Promise<ScheduleList> {
  const found = await findSchedules(db, tables, { ...page, limit: limit + 1 });
  const schedules = found.slice(0, limit).map(toScheduleRecord);
  return { schedules, nextCursor: found.length > limit ? schedules.at(-1)?.name : undefined };
}

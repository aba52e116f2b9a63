import { type SQL, sql } from 'drizzle-orm';
import { AWAITED } from '../job/awaited.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { tablesChannel } from './wake-channel.ts';
import { notified } from './wake-up.ts';

/** 17 characters each, and a notification carries less than 8,000 bytes. */
const MOST_IDS = 400;

/** The channel on which end notices are sent: ids of jobs that have ended. */
export function endChannel(tables: Pick<QueueTables, 'queueJobs'>): string {
  return tablesChannel(tables, 'end');
}

/** The payloads of the notifications that say that these jobs have ended. */
export function endNotices(ids: readonly number[]): string[] {
  const notices: string[] = [];
  for (let at = 0; at < ids.length; at += MOST_IDS) notices.push(ids.slice(at, at + MOST_IDS).join(' '));
  return notices;
}

/** The ids in such a payload; none in a test of the connection. */
export function endedIds(notice: string): number[] {
  return /^[\d ]+$/.test(notice) ? notice.split(' ').map(Number) : [];
}

/**
 * Sends an end notice for a job that asks for it, when the transaction commits. Use it in the outermost
 * select of a statement, once for each job that it ends. On Citus that runs on the node of the rows, where no
 * process listens: waiters then find the end by polling.
 */
export function noticeOfEnd(tables: Pick<QueueTables, 'queueJobs'>, job: { id: SQL; metadata: SQL }): SQL {
  const isAwaited = sql.raw(`'{"${AWAITED}": true}'`);
  const notice = notified(endChannel(tables), sql`${job.id}::text`);
  return sql`case when ${job.metadata} @> ${isAwaited} then ${notice} end`;
}

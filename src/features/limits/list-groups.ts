import { findCrews } from '../../core/queries/operate/find-crews.ts';
import { kindsServed } from '../../core/queue/stats/workers-of.ts';
import type { Executor } from '../../core/sql/executor.ts';
import { findGroups, type GroupFacts, type GroupPage } from './queries/find-groups.ts';
import type { GroupSettings } from './settings/limit-settings.ts';
import type { GroupTables } from './sql/limit-tables.ts';

/** A group of a queue as claims see it. */
export interface GroupRecord {
  readonly group: string;
  /** How many of its jobs living workers hold. */
  readonly running: number;
  /**
   * Where it stands. `ready`: its jobs are claimed as its turn comes. `waiting`: until `readyAt`, when
   * some of its rate is free again, or its next job is due. `idle`: nothing is due, or something stops it.
   * `blocked`: by `blockedBy`.
   */
  readonly state: 'ready' | 'waiting' | 'idle' | 'blocked';
  /**
   * Why its next due job is not claimed; `null` when none is due, or when it is claimed as its turn comes.
   *
   * - `limit`: as many of its jobs run as its `concurrency` allows.
   * - `rate`: its rate is used up, until `readyAt`.
   * - `order`: its jobs run one after the other, and one before it runs, is to be retried, or was discarded.
   * - `handler`: no worker of the queue has a handler for what is due.
   *
   * A pause, and the limits of the queue and of a kind, stop jobs of all groups: see `queue.limits.list`.
   */
  readonly stoppedBy: 'limit' | 'rate' | 'order' | 'handler' | null;
  /** When claims look at it again; `null` unless it waits. */
  readonly readyAt: Date | null;
  /** The discarded job that stops it until `queue.limits.unblock`, or until it is redriven. */
  readonly blockedBy: number | null;
}

/** One page of a queue's groups, and what stops each: see `Limits.groups`. */
export async function listGroups(
  db: Executor,
  tables: GroupTables,
  page: Omit<GroupPage, 'kinds'>,
  settings: GroupSettings,
): Promise<GroupRecord[]> {
  const kinds = kindsServed(await findCrews(db, tables), page.queue);
  const found = await findGroups(db, tables, { ...page, kinds });
  return found.map((facts) => toGroupRecord(facts, settings));
}

function toGroupRecord(facts: GroupFacts, settings: GroupSettings): GroupRecord {
  const { group, running, turn, readyAt = null, blockedBy = null } = facts;
  const state = blockedBy === null ? turn : 'blocked';
  return { group, running, state, stoppedBy: stoppedBy(facts, settings), readyAt, blockedBy };
}

function stoppedBy(
  { turn, running, blockedBy, retries, due, served, concurrency: set, hasRate }: GroupFacts,
  { serial, concurrency: declared, rate }: GroupSettings,
): GroupRecord['stoppedBy'] {
  if (!due) return null;
  if (serial !== undefined) {
    if (blockedBy !== undefined || retries || running > 0) return 'order';
  } else if (running >= (set ?? declared ?? Number.POSITIVE_INFINITY)) {
    return 'limit';
  }
  if (!served) return 'handler';
  return turn === 'waiting' && (hasRate || rate !== undefined) ? 'rate' : null;
}

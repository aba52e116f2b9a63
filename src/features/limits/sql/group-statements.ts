import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../../core/schema/create-queue-tables.ts';
import { refusedOnCitus } from '../../../core/sql/refused-on-citus.ts';
import { inContext } from '../../../core/sql/statement-context.ts';
import type { EndedHolds, StatementExtension, UnblockedJobs } from '../../../core/sql/statement-extension.ts';
import { CONTROL_ENTRY } from '../../control/control-entry.ts';
import {
  boundsGroups,
  type DeclaredQueueLimits,
  isGrouped,
  isRated,
  keepsPlace,
  type Serial,
} from '../settings/limit-settings.ts';
import type { LimitTables } from './limit-tables.ts';
import { insertNotes } from './note-groups.ts';

/** Of a job that blocks others: without an end, it was discarded; else it waits for its next attempt. */
const UNTIL = {
  discarded: sql` and h.until = 'infinity'`,
  retried: sql` and h.until < 'infinity'`,
  both: sql``,
};

/** What groups add to the core's statements: notes for the claims, and the slots of jobs that have ended. */
class GroupStatements implements StatementExtension {
  readonly tables: LimitTables;
  readonly entry = CONTROL_ENTRY;
  readonly refusal = refusedOnCitus;
  readonly groupedQueues: ReadonlySet<string> | undefined;
  readonly queuesWithCosts: ReadonlySet<string>;
  readonly endedColumns = sql`, j.group_key as ended_group, j.run_at as ended_run_at`;
  readonly #declared: ReadonlyMap<string, DeclaredQueueLimits>;

  /** @param declared `undefined`: not known to this process */
  constructor(tables: LimitTables, declared: ReadonlyMap<string, DeclaredQueueLimits> | undefined) {
    const known = declared ?? new Map<string, DeclaredQueueLimits>();
    const queuesThat = (has: (limits: DeclaredQueueLimits) => boolean) =>
      new Set([...known].filter(([, limits]) => has(limits)).map(([queue]) => queue));
    this.tables = tables;
    this.groupedQueues = declared && queuesThat(isGrouped);
    this.queuesWithCosts = queuesThat((limits) => isGrouped(limits) || isRated(limits));
    this.#declared = known;
  }

  /** Notes of each group among the rows at which times claims should look at it; not of jobs that wait. */
  tellOfTimes(rows: string): SQL {
    return insertNotes(
      this.tables,
      sql`
        select distinct g.queue, g.run_at as due_at, g.group_key from ${sql.raw(rows)} as g
        where g.group_key is not null and g.run_at < 'infinity'`,
    );
  }

  /**
   * Notes for the claims which groups have a free slot that a job may wait for, and when jobs that were put
   * back are due again. Jobs of `blocks` keep their slot.
   */
  afterEnds({ queue, rows, endsAs, blocks }: EndedHolds): SQL {
    const ended = sql.raw(rows);
    const deleted = endsAs !== undefined;
    const dueLater = deleted
      ? sql``
      : sql`
        union
        select ${queue}::text, e.ended_run_at, e.ended_group from ${ended} as e
        where e.ended_group is not null and e.ended_run_at > statement_timestamp()
          and e.ended_run_at < 'infinity'`;
    const ofBlocks = (text: SQL) => (blocks === undefined ? sql`` : text);
    // With others in a union each is there once.
    const once = blocks === undefined ? sql`distinct ` : sql``;
    const free = ofBlocks(sql` and e.id not in (select id from blocking)`);
    // A cancel may be part of a transaction of the app, which stays open after a limit was set. What blocks
    // others either frees no slot, as its handler goes on, or stops a group, which needs its notes anyway.
    const mayBeUnnoted = deleted && endsAs.cancelled === undefined && blocks === undefined;
    const awaited = mayBeUnnoted ? this.#mayBeAwaited(queue, ended) : sql``;
    const untilThen = ofBlocks(sql`
        union
        select ${queue}::text, b.until, b.ended_group from blocking as b
        where b.until < 'infinity'`);
    return sql`${blocks === undefined ? sql`` : this.#blocking(queue, ended, blocks)},
    noted as (${insertNotes(
      this.tables,
      sql`
        select ${once}${queue}::text as queue, statement_timestamp() as due_at, e.ended_group as group_key
        from ${ended} as e
        where e.ended_group is not null${free}${awaited}${untilThen}${dueLater}`,
    )}
    )`;
  }

  /**
   * Where groups take turns alone, no job of one waits for the end of another. Another process may know of a
   * limit, or one may have been set: then the group's row says so. `IS TRUE` keeps `in` from becoming a join
   * of CTEs of unknown size, a nested loop: 500 ends took 450 ms.
   */
  #mayBeAwaited(queue: string, ended: SQL): SQL {
    if (boundsGroups(this.#declared.get(queue)?.groups ?? {})) return sql``;
    return sql`
          and (e.ended_group in (
            select g.group_key from ${this.tables.queueGroups} as g
            where g.queue = ${queue} and g.bounded_since is not null
              and g.group_key = any(array(select e.ended_group from ${ended} as e))
          )) is true`;
  }

  /**
   * Holds that keep the slots of these jobs in their groups. Postgres expects one row of each where the last
   * ANALYZE saw a small table. A full join is never a nested loop, and `offset 0` leaves it one.
   */
  #blocking(queue: string, ended: SQL, blocks: SQL): SQL {
    return sql`,
    blocking as materialized (
      select b.id, b.until, b.worker_id, b.ended_group from (
        select b.*, e.ended_group from (${blocks}) as b full join ${ended} as e on e.id = b.id offset 0
      ) as b
      where b.id is not null and b.ended_group is not null
    ),
    blocked as (
      insert into ${this.tables.queueHolds} as h (queue, group_key, job_id, until, worker_id)
      select ${queue}::text, b.ended_group, b.id, b.until, b.worker_id from blocking as b
      order by b.ended_group, b.id
      on conflict (queue, group_key, job_id) do update
        set (until, worker_id) = (excluded.until, excluded.worker_id)
    )`;
  }

  keepsPlace(queue: string): boolean {
    return keepsPlace(this.#serialOf(queue));
  }

  waitsForSuccess(queue: string): boolean {
    return this.#serialOf(queue) === 'success';
  }

  hasStoppedGroup(queue: string | undefined): SQL {
    return sql`exists (
          select from ${this.tables.queueHolds} as h
          where h.queue = ${queue === undefined ? sql`d.queue` : sql`${queue}::text`}
            and h.group_key = d.group_key and h.job_id = d.job_id and h.until = 'infinity'
        )`;
  }

  unblock({ rows, queue, which }: UnblockedJobs): SQL {
    return sql`,
    unblocked as (
      delete from ${this.tables.queueHolds} as h using ${sql.raw(rows)} as u
      where h.queue = ${queue === undefined ? sql`u.queue` : sql`${queue}::text`}
        and h.group_key = u.group_key and h.job_id = u.id${UNTIL[which]}
    )`;
  }

  #serialOf(queue: string): Serial | undefined {
    return this.#declared.get(queue)?.groups?.serial;
  }
}

/** The same tables, for statements that must know which queues have groups, or rates. */
export function withGrouping<TTables extends QueueTables>(
  tables: TTables,
  limitTables: LimitTables,
  declared: ReadonlyMap<string, DeclaredQueueLimits> | undefined,
): TTables {
  return inContext(tables, { extension: new GroupStatements(limitTables, declared) });
}

import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type RawRow, type Runner } from '../../sql/executor.ts';
import { isDistributed } from '../../sql/statement-context.ts';
import { type GoneLimits, seenText, testedLock, type WhyGone, whyGone } from '../../sql/why-gone.ts';
import { beatWorker, beatWorkerQuery, type LivingWorker } from './beat-worker.ts';
import { findWorkers, knownWorkers } from './find-workers.ts';

export interface GoneWorker {
  readonly id: number;
  /** Changes whenever the worker shows itself. */
  readonly seen: string;
  readonly why: WhyGone;
  /** The backend process id of the connection that held its session; `undefined` without one. */
  readonly session: number | undefined;
}

export interface WorkersCheckOptions {
  readonly worker: LivingWorker;
  /** Whether to say in the same statement that it is alive: see `beatWorker`. */
  readonly beat: boolean;
  readonly limits: GoneLimits;
}

/** What a check has seen, before its own beat. */
export interface WorkersCheck {
  /** How many workers are registered; those that share a connection for their sessions count as one. */
  readonly workers: number;
  /** How many of them, itself included, serve the same queues and kinds; 1 where that is not known. */
  readonly crew: number;
  /**
   * When the checking worker was registered, as text with all its digits; `undefined` when it is not. A new
   * time says that it was declared gone in between, even if the result of its registration was lost.
   */
  readonly startedAt: string | undefined;
  /**
   * Whether its own session lock is free although its row says that it holds one. It looks free, too, on a
   * connection that holds it but is not in its row yet; so `pid` tells which connection this was.
   */
  readonly unlocked: boolean;
  /** The process id of the server's end of the connection that the check ran on. */
  readonly pid: number;
  /** When the server was started that has run the check: another one has another time. */
  readonly serverStartedAt: string;
  /** The server's clock when the check began, in milliseconds since 1970. */
  readonly serverMs: number;
  readonly gone: readonly GoneWorker[];
}

/**
 * Finds the workers that look gone, and on demand records that the asking worker is alive. As long as no
 * worker is gone, a worker sends no other statement about liveness.
 *
 * **Under concurrency.** Any number of workers may check at once. The locks that it finds free are taken, in
 * shared mode, until the statement ends; a worker that wants its session lock at that moment tries again.
 * What it returns may be out of date at once, so `removeGoneWorkers` looks again.
 */
export async function checkWorkers(
  runner: Runner,
  tables: QueueTables,
  options: WorkersCheckOptions,
): Promise<WorkersCheck> {
  const rows = isDistributed(tables)
    ? await checkApart(runner, tables, options)
    : await queryRows(runner, tables, checkWorkersQuery(tables, options));
  const [row] = rows;
  return {
    workers: Number(row?.workers),
    crew: Math.max(Number(row?.crew), 1),
    startedAt: typeof row?.started === 'string' ? row.started : undefined,
    unlocked: row?.unlocked === true,
    pid: Number(row?.pid),
    serverStartedAt: String(row?.server),
    serverMs: Number(row?.clock) * 1_000,
    gone: rows
      .filter(({ id }) => id !== null)
      // The words are the statement's own.
      .map(({ id, seen, why, session }) => ({
        id: Number(id),
        seen: String(seen),
        why: why as WhyGone,
        session: session === null ? undefined : Number(session),
      })),
  };
}

/**
 * On Citus the rows are read first, and the locks tested by a statement without a table: one that reads the
 * rows runs where they are, which need not be the node of the sessions.
 */
async function checkApart(
  runner: Runner,
  tables: QueueTables,
  { worker, beat, limits }: WorkersCheckOptions,
): Promise<RawRow[]> {
  const known = knownWorkers(await findWorkers(runner, tables));
  if (beat) await beatWorker(runner, tables, worker);
  return await queryRows(runner, tables, checkWorkersQuery(tables, { worker, beat: false, limits }, known));
}

/**
 * @param from the workers, for a `FROM`
 * @insteadOnCitus (plain; beat) checkWorkersQuery, of known workers
 */
export function checkWorkersQuery(
  tables: QueueTables,
  { worker, beat, limits }: WorkersCheckOptions,
  from: SQL = sql`${tables.queueWorkers}`,
): SQL {
  return sql`
    with ${
      beat
        ? sql`beat as (${beatWorkerQuery(tables, worker)}
    ),
    `
        : sql``
    }seen as materialized (
      select w.id, w.session, w.queues || jsonb_build_array(w.kinds) as work,
        extract(epoch from w.started_at)::text as started, ${seenText} as seen, l.free,
        ${whyGone(limits)} as why
      from ${from} as w cross join lateral ${testedLock(tables, worker.id)} as l
    )
    select own.*, pg_backend_pid() as pid, extract(epoch from pg_postmaster_start_time())::text as server,
      extract(epoch from statement_timestamp())::text as clock, g.id, g.seen, g.why, g.session
    from (
      select count(distinct coalesce(s.session, -s.id)) as workers,
        count(*) filter (where s.work = (
          select m.work from seen as m where m.id = ${worker.id}::int8
        )) as crew,
        max(s.started) filter (where s.id = ${worker.id}::int8) as started,
        bool_or(s.free) filter (where s.id = ${worker.id}::int8) as unlocked
      from seen as s
    ) as own
    left join seen as g on g.why is not null and g.id <> ${worker.id}::int8`;
}

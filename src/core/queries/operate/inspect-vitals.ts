import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { queryRows, type RawRow, type Runner } from '../../sql/executor.ts';
import { quotedName } from '../../sql/quoted-name.ts';

/** What keeps the server from removing dead rows. */
export interface HeldSnapshot {
  readonly holder: string;
  /** What ends it, as SQL. */
  readonly remedy: string;
  readonly ms: number;
}

/** What the server says about the upkeep of the queue's tables. */
export interface ServerVitals {
  /** The oldest transaction with a snapshot, or prepared, that this role may see. */
  readonly snapshot: HeldSnapshot | undefined;
  /** The replication slot that holds back the most, and how many transactions. */
  readonly slot: { readonly name: string; readonly transactions: number } | undefined;
  readonly deadRows: number;
  readonly liveRows: number;
  /** When autovacuum last finished a part of `queue_jobs`; `undefined`: never. */
  readonly vacuumedMsAgo: number | undefined;
  readonly transactionAge: number;
}

/** Reads the server's own statistics, and no row of the queue's tables. */
export async function inspectVitals(db: Runner, tables: QueueTables): Promise<ServerVitals> {
  const [row = {}] = await queryRows(db, tables, inspectVitalsQuery(tables));
  return {
    snapshot:
      row.holder === null
        ? undefined
        : {
            holder: String(row.holder),
            remedy: String(row.remedy),
            ms: Math.max(0, Number(row.held_ms)),
          },
    slot: row.slot === null ? undefined : { name: String(row.slot), transactions: Number(row.slot_age) },
    deadRows: Number(row.dead),
    liveRows: Number(row.live),
    vacuumedMsAgo: numberOf(row.vacuumed_ms),
    transactionAge: Number(row.frozen_age ?? 0),
  };
}

function numberOf(value: RawRow[string]): number | undefined {
  return value === null || value === undefined ? undefined : Number(value);
}

/** A snapshot in another database holds up no vacuum here. */
export function inspectVitalsQuery({ queueJobs, queueResults }: QueueTables): SQL {
  return sql`
    with recursive sought as (
      select 'jobs' as name, to_regclass(${quotedName(queueJobs)})::oid as id
      union all
      select 'results', to_regclass(${quotedName(queueResults)})::oid
    ),
    part as (
      select name, id from sought
      union all
      select p.name, i.inhrelid from pg_inherits as i join part as p on i.inhparent = p.id
    ),
    snapshot as (
      (
        select 'the process ' || a.pid || ' (' || concat_ws(', ', nullif(a.application_name, ''), a.usename,
            a.state) || ')' as holder, 'select pg_terminate_backend(' || a.pid || ')' as remedy,
          date_part('epoch', statement_timestamp() - a.xact_start) * 1000 as ms
        from pg_stat_activity as a
        where a.datname = current_database() and a.backend_xmin is not null and a.pid <> pg_backend_pid()
          and a.backend_type = 'client backend' and a.xact_start is not null
        order by a.xact_start limit 1
      )
      union all
      (
        select 'the prepared transaction ' || quote_literal(x.gid),
          'rollback prepared ' || quote_literal(x.gid),
          date_part('epoch', statement_timestamp() - x.prepared) * 1000
        from pg_prepared_xacts as x where x.database = current_database()
        order by x.prepared limit 1
      )
    ),
    slot as (
      select s.slot_name::text as name, age(s.xmin)::float8 as age from pg_replication_slots as s
      where s.xmin is not null order by age(s.xmin) desc limit 1
    )
    select (select s.holder from snapshot as s order by s.ms desc limit 1) as holder,
      (select s.remedy from snapshot as s order by s.ms desc limit 1) as remedy,
      (select max(s.ms) from snapshot as s) as held_ms,
      (select s.name from slot as s) as slot, (select s.age from slot as s) as slot_age,
      coalesce(sum(t.n_dead_tup) filter (where p.name = 'jobs'), 0)::float8 as dead,
      coalesce(sum(t.n_live_tup) filter (where p.name = 'jobs'), 0)::float8 as live,
      date_part('epoch', statement_timestamp() - max(t.last_autovacuum) filter (where p.name = 'jobs'))
        * 1000 as vacuumed_ms,
      max(case when c.relkind = 'r' then age(c.relfrozenxid)::float8 end) as frozen_age
    from part as p join pg_class as c on c.oid = p.id left join pg_stat_all_tables as t on t.relid = p.id`;
}

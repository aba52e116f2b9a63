import { migration, namesIn, type TablePlace } from './table-names.ts';

/** How the tables are partitioned: one for each of some queues and one for the rest, or by hash. */
export type Partitioning = { readonly list: readonly string[] } | { readonly hash: number };

/** The migration that partitions jobs and results by queue, as the guide "Scaling" has it; keeps all rows. */
export function partitionsSql(place: TablePlace, partitioning: Partitioning): string {
  const { at, bare } = namesIn(place);
  const by = 'hash' in partitioning ? 'hash' : 'list';
  const flat = (table: string, indexes: readonly string[]) => [
    `alter table ${at(table)} rename to ${bare(table)}_flat`,
    `alter table ${at(table)}_flat rename constraint ${bare(table)}_pkey to ${bare(table)}_flat_pkey`,
    ...indexes.map(
      (index) => `alter index ${at(table)}_${index}_idx rename to ${bare(table)}_flat_${index}_idx`,
    ),
  ];
  const made = (table: string) =>
    `create table ${at(table)} (like ${at(table)}_flat including all excluding indexes)
  partition by ${by} (queue)`;
  const parts = (table: string) => partitionsOf(at(table), partitioning);
  return migration([
    ...flat('jobs', ['claim', 'group', 'unique_key', 'waiting_key', 'batch', 'failed']),
    `alter sequence ${at('jobs')}_id_seq rename to ${bare('jobs')}_flat_id_seq`,
    made('jobs'),
    `alter table ${at('jobs')} add constraint ${bare('jobs')}_pkey primary key (id, queue)`,
    `create index ${bare('jobs')}_claim_idx on ${at('jobs')} (priority, queue, run_at, id)
  where group_key is null`,
    `create index ${bare('jobs')}_group_idx on ${at('jobs')} (queue, group_key, priority, run_at, id)
  where group_key is not null`,
    `create unique index ${bare('jobs')}_unique_key_idx on ${at('jobs')} (queue, kind, unique_key)
  where unique_key is not null`,
    `create unique index ${bare('jobs')}_waiting_key_idx on ${at('jobs')} (queue, kind, waiting_key)
  where waiting_key is not null`,
    `create index ${bare('jobs')}_batch_idx on ${at('jobs')} (batch_id) where batch_id is not null`,
    `create index ${bare('jobs')}_failed_idx on ${at('jobs')} (queue, run_at, id)
  where errors <> '[]'::jsonb`,
    ...parts('jobs'),
    `insert into ${at('jobs')} overriding system value select * from ${at('jobs')}_flat`,
    `select setval('${at('jobs')}_id_seq', nextval('${at('jobs')}_flat_id_seq'))`,
    `drop table ${at('jobs')}_flat`,
    ...flat('results', ['finished_at', 'discarded', 'unique_key', 'group', 'batch']),
    made('results'),
    `alter table ${at('results')} add constraint ${bare('results')}_pkey primary key (job_id, queue)`,
    `create index ${bare('results')}_finished_at_idx on ${at('results')} (finished_at)`,
    `create index ${bare('results')}_discarded_idx on ${at('results')} (finished_at)
  where state = 'discarded'`,
    `create index ${bare('results')}_unique_key_idx on ${at('results')} (unique_key, job_id)
  where unique_key is not null`,
    `create index ${bare('results')}_group_idx on ${at('results')} (group_key, job_id)
  where group_key is not null`,
    `create index ${bare('results')}_batch_idx on ${at('results')} (batch_id) where batch_id is not null`,
    ...parts('results'),
    `insert into ${at('results')} select * from ${at('results')}_flat`,
    `drop table ${at('results')}_flat`,
  ]);
}

function partitionsOf(table: string, partitioning: Partitioning): string[] {
  if ('hash' in partitioning) {
    const { hash } = partitioning;
    return Array.from(
      { length: hash },
      (_, index) =>
        `create table ${table}_${index} partition of ${table} ` +
        `for values with (modulus ${hash}, remainder ${index})`,
    );
  }
  const taken = new Set(['rest', 'flat']);
  const ofQueues = partitioning.list.map((queue) => {
    const name = nameFor(queue, taken);
    taken.add(name);
    const value = queue.replaceAll("'", "''");
    return `create table ${table}_${name} partition of ${table} for values in ('${value}')`;
  });
  return [...ofQueues, `create table ${table}_rest partition of ${table} default`];
}

/** A plain name for any queue's; names of PostgreSQL have at most 63 bytes. */
function nameFor(queue: string, taken: ReadonlySet<string>): string {
  const plain = queue
    .toLowerCase()
    .replaceAll(/[^a-z0-9_]/g, '_')
    .slice(0, 30);
  for (let number = 1; ; number++) {
    const name = number === 1 ? plain : `${plain}_${number}`;
    if (!taken.has(name)) return name;
  }
}

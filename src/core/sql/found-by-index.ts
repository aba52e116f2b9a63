import { type SQL, sql } from 'drizzle-orm';
import { waitingKeysOf } from '../job/key-rule.ts';
import type { QueueTables } from '../schema/create-queue-tables.ts';
import { walkIndex } from './walk-index.ts';

/** That a live job `j` has this unique or waiting key, or that a result `r` had it as its unique one. */
export function hasKey(key: string, alias: 'j' | 'r'): SQL {
  return alias === 'r' ? sql`r.unique_key = ${key}` : sql`(j.unique_key = ${key} or ${waitsWith(key)})`;
}

function waitsWith(key: string): SQL {
  return sql`j.waiting_key in (${sql.join(
    waitingKeysOf(key).map((stored) => sql`${stored}`),
    sql`, `,
  )})`;
}

/** Live jobs `j` with a key, of every queue and kind, for a `FROM`; the indexes go by both first. */
export function jobsOfKey(tables: QueueTables, key: string): SQL {
  const onlyWaiting = sql`${waitsWith(key)} and j.unique_key is distinct from ${key}`;
  return sql`(
          ${byKey(tables, 'unique_key', sql`j.unique_key = ${key}`)}
          union all
          ${byKey(tables, 'waiting_key', onlyWaiting)}
        )`;
}

function byKey(tables: QueueTables, column: 'unique_key' | 'waiting_key', fits: SQL): SQL {
  const isKeyed = sql.raw(`j.${column} is not null`);
  return sql`(
            with recursive ${walkIndex(tables, { name: 'pair', by: ['queue', 'kind'], where: isKeyed })}
            select j.* from pair as p cross join lateral (
              select j.* from ${tables.queueJobs} as j
              where j.queue = p.queue and j.kind = p.kind and ${fits} limit 2
            ) as j
          )`;
}

/** The first live jobs `j` of a group, of every queue, for a `FROM`. */
export function jobsOfGroup(
  tables: QueueTables,
  group: string,
  { columns = sql`j.*`, limit }: { readonly columns?: SQL; readonly limit: number },
): SQL {
  return sql`(
          with recursive ${walkIndex(tables, {
            name: 'part',
            by: ['queue'],
            where: sql`j.group_key is not null`,
          })}
          select j.* from part as p cross join lateral (
            select ${columns} from ${tables.queueJobs} as j
            where j.queue = p.queue and j.group_key = ${group} limit ${limit}
          ) as j limit ${limit}
        )`;
}

/** That a result `r` has the key that is sought, or else is in the group: an index finds those. */
export function isSoughtResult({
  uniqueKey,
  group,
}: {
  readonly uniqueKey?: string | undefined;
  readonly group?: string | undefined;
}): SQL {
  return uniqueKey === undefined ? sql`r.group_key = ${group}` : hasKey(uniqueKey, 'r');
}

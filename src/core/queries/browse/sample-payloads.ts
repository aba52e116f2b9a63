import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../schema/create-queue-tables.ts';
import { type Executor, queryRows } from '../../sql/executor.ts';
import { inScope, type JobScope } from '../../sql/job-scope.ts';

/** A key of payloads with a value that some have. */
export interface SampledValue {
  readonly key: string;
  /** A number, a text, or true or false, as text. */
  readonly value: string;
}

export interface PayloadsToSample {
  readonly scope: JobScope;
  readonly kind: string | undefined;
  /** How many of the newest payloads of each table are read. */
  readonly payloads: number;
  /** Among how many of the newest rows. */
  readonly bound: number;
  readonly limit: number;
}

/**
 * Keys and plain values that stand in the newest payloads, the most frequent first: those at the top of an
 * object, whose names need no quotes. Payloads of more than 8 kB are left out.
 *
 * **Under concurrency.** A plain read of one snapshot.
 */
export async function samplePayloads(
  db: Executor,
  tables: QueueTables,
  sample: PayloadsToSample,
): Promise<SampledValue[]> {
  const rows = await queryRows(db, tables, samplePayloadsQuery(tables, sample));
  return rows.map(({ key, value }) => ({ key: String(key), value: String(value) }));
}

/** @crossesQueues takes the newest payloads of all queues */
export function samplePayloadsQuery({ queueJobs, queueResults }: QueueTables, sample: PayloadsToSample): SQL {
  const { scope, kind, payloads, bound, limit } = sample;
  const where = (alias: 'j' | 'r') =>
    sql.join(
      [
        sql.raw(`jsonb_typeof(${alias}.payload) = 'object' and pg_column_size(${alias}.payload) <= 8192`),
        ...(kind === undefined ? [] : [sql`${sql.raw(`${alias}.kind`)} = ${kind}`]),
        ...inScope(scope, alias),
      ],
      sql` and `,
    );
  return sql`
    select e.key, e.value #>> '{}' as value
    from (
      (
        select j.payload from (select j.* from ${queueJobs} as j order by j.id desc limit ${bound}) as j
        where ${where('j')} limit ${payloads}
      )
      union all
      (
        select r.payload from (
          select r.* from ${queueResults} as r order by r.job_id desc limit ${bound}
        ) as r
        where ${where('r')} limit ${payloads}
      )
    ) as p
    cross join lateral jsonb_each(p.payload) as e(key, value)
    where jsonb_typeof(e.value) in ('string', 'number', 'boolean') and length(e.value::text) <= 60
      and e.key ~ '^[A-Za-z0-9_$-]{1,60}$'
    group by e.key, e.value
    order by count(*) desc, e.key, e.value limit ${limit}`;
}

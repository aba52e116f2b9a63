import { type SQL, sql } from 'drizzle-orm';
import type { PgTable } from 'drizzle-orm/pg-core';
import type { EndsAs, MemberExtension } from '../../../core/sql/member-extension.ts';
import { refusedOnCitus } from '../../../core/sql/refused-on-citus.ts';
import { BATCHES_ENTRY, type BatchTables } from './batch-tables.ts';

/** Why members end whose parent was cancelled. */
export const PARENT_CANCELLED = 'The job that enqueued it was cancelled';

/**
 * What the statements that end members add: a tally for each batch. It is an insert alone, so a settlement
 * waits for no other, and the transaction of an app that ends one holds up none.
 */
export class TalliedEnds implements MemberExtension {
  readonly tables: Readonly<Record<string, PgTable>>;
  readonly entry = BATCHES_ENTRY;
  readonly refusal = refusedOnCitus;
  readonly #tables: BatchTables;

  constructor({ queueBatches, queueWaits, queueTallies }: BatchTables) {
    this.#tables = { queueBatches, queueWaits, queueTallies };
    this.tables = { queueBatches, queueWaits, queueTallies };
  }

  afterEnds(rows: string, { failed, cancelled }: EndsAs): SQL {
    const { queueTallies, queueWaits } = this.#tables;
    const ended = sql.raw(rows);
    const children =
      cancelled === undefined
        ? sql``
        : sql`
      union all
      select w.batch_id, 0, 0, ${PARENT_CANCELLED}
      from ${ended} as e join ${queueWaits} as w on w.job_id = e.id and w.policy = 'parent'
      where ${cancelled}`;
    return sql`,
    tallied as (
      insert into ${queueTallies} (batch_id, ended, failed, cancel_reason)
      select e.member_of, count(*)::int4, count(*) filter (where ${failed})::int4, null
      from ${ended} as e where e.member_of is not null
      group by e.member_of${children}
    )`;
  }

  afterRedrive(rows: string): SQL {
    return sql`,
    tallied as (
      insert into ${this.#tables.queueTallies} (batch_id, ended, failed)
      select e.member_of, -count(*)::int4, -count(*)::int4
      from ${sql.raw(rows)} as e where e.member_of is not null
      group by e.member_of
    )`;
  }
}

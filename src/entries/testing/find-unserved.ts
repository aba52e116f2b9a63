import { type SQL, sql } from 'drizzle-orm';
import type { QueueTables } from '../../core/schema/index.ts';
import type { Executor } from '../../index.ts';
import { queryRows } from '../../internal.ts';
import { isFree, servedKind } from '../../testing-face.ts';
import type { NextJobQuestion } from './find-next-job.ts';
import { writtenHere } from './written-here.ts';

/** Due jobs of a kind that is not among those asked for. */
export interface Unserved {
  readonly kind: string;
  readonly jobs: number;
  /** The first of them. */
  readonly id: number;
}

/** Kinds that have due, unheld jobs and are not in `kinds`. Jobs of paused queues do not count. */
export async function findUnserved(
  db: Executor,
  tables: QueueTables,
  question: Pick<NextJobQuestion, 'kinds' | 'queues' | 'written'>,
): Promise<Unserved[]> {
  const rows = await queryRows(db, tables, findUnservedQuery(tables, question));
  return rows.map(({ kind, jobs, id }) => ({ kind: String(kind), jobs: Number(jobs), id: Number(id) }));
}

export function findUnservedQuery(
  tables: QueueTables,
  { kinds, queues, written }: Pick<NextJobQuestion, 'kinds' | 'queues' | 'written'>,
): SQL {
  const { queueJobs, queuePauses } = tables;
  const ofQueues = queues?.map((name) => sql`${name}::text`);
  return sql`
    select j.kind, count(*)::float8 as jobs, min(j.id) as id
    from ${queueJobs} as j
    where j.run_at <= statement_timestamp() and ${isFree(tables)} and not (${servedKind(kinds)})${
      ofQueues === undefined ? sql`` : sql` and j.queue in (${sql.join(ofQueues, sql`, `)})`
    }${written ? sql` and ${writtenHere('j')}` : sql``}
      and not exists (select from ${queuePauses} as p where p.queue = j.queue)
    group by j.kind order by min(j.id)`;
}

import { type SQL, sql } from 'drizzle-orm';
import { throughIndex } from '../../../core/sql/through-index.ts';

/** The live job that someone outside of it addresses. */
export type LiveTarget =
  | { readonly queue: string; readonly id: number; readonly kind?: string | undefined }
  | { readonly queue: string; readonly kind: string; readonly uniqueKey: string };

/** Whether a job `j` is the one: by its primary key, or by its unique key. */
export function isTarget(to: LiveTarget): SQL {
  if ('id' in to) {
    const ofKind = to.kind === undefined ? sql`` : sql` and j.kind = ${to.kind}`;
    return sql`j.queue = ${to.queue} and j.id = ${to.id}::int8${ofKind}`;
  }
  return sql`j.queue = ${to.queue} and j.kind = ${to.kind} and j.unique_key = ${to.uniqueKey}
    and ${throughIndex(sql`j.unique_key is not null`)}`;
}

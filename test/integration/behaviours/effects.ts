import { sql } from 'drizzle-orm';
import { rowsOf, type Site } from './behaviour.ts';

/** A table of the app's own, for what handlers write. */
export async function createEffects({ db }: Site): Promise<void> {
  await db.execute(sql`create table if not exists effects (job_id int8, attempt int4)`);
}

/** The attempts that have written for a job, in order. */
export async function effectsOf({ db }: Site, id: number): Promise<readonly unknown[]> {
  const result = await db.execute(
    sql`select attempt from effects where job_id = ${id}::int8 order by attempt`,
  );
  return rowsOf(result).map(({ attempt }) => attempt);
}

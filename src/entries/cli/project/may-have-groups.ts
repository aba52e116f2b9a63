import { type SQL, sql } from 'drizzle-orm';
import type { Database } from '../../../index.ts';
import { isCitus, queryRows, quotedName, sqlStateOf, unlessMissing } from '../../../internal.ts';
import type { FoundTables } from './exported-tables.ts';

/**
 * Whether jobs may be in groups, of which a change has to tell claims. Where none are, a role needs no rights
 * to do so: one that lacks them is refused only where it would leave a group standing. Citus has no groups.
 */
export async function mayHaveGroups(db: Database, tables: FoundTables): Promise<boolean> {
  if (await isCitus(db, tables)) return false;
  const isSo = async (condition: SQL) =>
    (await queryRows(db, tables, sql`select ${condition} as is_so`))[0]?.is_so === true;
  const { queueJobs, queueResults, queueHolds, queueNotes } = tables;
  const [holds, notes] = [quotedName(queueHolds), quotedName(queueNotes)];
  const may = sql`has_table_privilege(${holds}, 'select') and has_table_privilege(${holds}, 'delete')
    and has_table_privilege(${notes}, 'insert')`;
  // A job may come into a group while a command such as the dashboard goes on.
  if (await isSo(may)) return true;
  const are = sql`exists (select from ${queueJobs} as j where j.group_key is not null)
    or exists (select from ${queueResults} as r where r.group_key is not null)`;
  try {
    return (await unlessMissing(isSo(are))) ?? false;
  } catch (error) {
    // A role that cannot read them cannot change them.
    if (sqlStateOf(error) === '42501') return false;
    throw error;
  }
}

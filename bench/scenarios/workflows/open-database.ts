import postgres, { type Sql } from 'postgres';
import { createDatabase } from '../../../test/support/databases.ts';
import type { Sites } from '../../harness/site.ts';
import type { Form } from './forms.ts';

export interface OpenDatabase {
  readonly url: string;
  readonly sql: Sql;
}

/** Has a fresh database with the tables of a form for as long as something is measured. */
export async function withDatabase<T>(
  sites: Sites,
  form: Pick<Form, 'create'>,
  measure: (database: OpenDatabase) => Promise<T>,
): Promise<T> {
  const { url, drop } = await createDatabase(sites.server.url, { template: await sites.template(form) });
  const sql = postgres(url, { max: 2, onnotice: () => {}, connection: { application_name: 'bench' } });
  try {
    return await measure({ url, sql });
  } finally {
    await sql.end();
    await drop();
  }
}

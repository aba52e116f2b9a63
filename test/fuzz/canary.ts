import { afterAll, beforeAll, expect } from 'vitest';
import type { UsedTestDatabase } from '../support/test-database.ts';

/**
 * Puts a table into a database that hostile texts try to drop, and looks after all tests whether any of them became SQL: the
 * tables are still those that there were, and the canary sings.
 */
export function useCanary(database: UsedTestDatabase): void {
  const tables = async () => {
    const rows = await database.client<{ name: string }[]>`
      select schemaname || '.' || tablename as name from pg_tables where schemaname !~ '^(pg_|information_schema)' order by 1`;
    return rows.map(({ name }) => name);
  };
  let before: string[] = [];

  beforeAll(async () => {
    await database.client`create table canary (id int primary key, song text not null)`;
    await database.client`insert into canary values (1, 'tweet')`;
    before = await tables();
  });

  afterAll(async () => {
    expect(before).toContain('public.canary');
    expect(await tables()).toEqual(before);
    expect([...(await database.client`select * from canary`)]).toEqual([{ id: 1, song: 'tweet' }]);
  });
}

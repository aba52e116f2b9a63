import type { Connection, UsedTestDatabase } from '../../support/test-database.ts';

/** Two connections, each independent of the other. */
export async function connectTwo(database: UsedTestDatabase): Promise<readonly [Connection, Connection]> {
  const [a, b] = await database.connect(2);
  if (a === undefined || b === undefined) throw new Error('connect(2) opened fewer than two connections');
  return [a, b];
}

import { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { npmVersion } from 'drizzle-orm/version';
import { expect, test } from 'vitest';
import { useTestDatabase } from './test-database.ts';

const database = useTestDatabase();

test('the run uses the version of drizzle-orm that it was started for', () => {
  expect(npmVersion).toMatch(process.env.DRIZZLE === 'v1' ? /^1\./ : /^0\./);
  // Not even the supporting code may hand out objects of another copy.
  expect(database.db).toBeInstanceOf(PostgresJsDatabase);
});

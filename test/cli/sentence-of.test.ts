import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { sentenceOf } from '../../src/entries/cli/sentence-of.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase();

test('a write to a database that may only be read says why, and where to connect', async () => {
  const refused = await database.db
    .transaction(async (tx) => {
      await tx.execute(sql`set transaction read only`);
      await tx.execute(sql`delete from queue_pauses`);
    })
    .catch((error: unknown) => error);
  expect(sentenceOf(refused)).toBe(
    'The database is read-only: connect to the primary, or turn default_transaction_read_only off ' +
      '(cannot execute DELETE in a read-only transaction)',
  );
});

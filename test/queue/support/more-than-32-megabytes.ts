import { createQueue, defineJob, unvalidated } from 'drizzle-queue';
import { expect } from 'vitest';
import type { Connection } from '../../support/test-database.ts';
import { recording } from './executors.ts';

const texts = defineJob('texts', { payload: unvalidated<string>() });

/** Expects that more than one parameter bears is sent as several of one statement, with the answers in order. */
export async function enqueueMoreThan32Megabytes(
  database: Connection,
  { keyed }: { readonly keyed: boolean },
): Promise<void> {
  const db = recording(database.db);
  const queue = createQueue({ maxPayloadBytes: 8 * 1024 * 1024 });
  // 12 of 3.5 million characters each, and small ones in between.
  const entries = Array.from({ length: 24 }, (_, n) => ({
    payload: n % 2 === 0 ? `${n} ${'é'.repeat(3_500_000)}` : `${n}`,
    ...(keyed && { uniqueKey: `${99 - n}` }),
  }));
  const answers = await queue.enqueueMany(db, texts, entries);
  expect(db.sent).toHaveLength(1);
  const large = db.sent[0]?.params.filter((param) => String(param).length > 1_000_000);
  expect(large).toHaveLength(2);
  const rows = await database.client<{ id: number; n: number; length: number }[]>`
    select id::int, split_part(payload #>> '{}', ' ', 1)::int as n, length(payload #>> '{}') as length
    from queue_jobs order by id`;
  expect(rows.map(({ id }) => id)).toEqual(answers.map(({ id }) => id));
  expect(rows.map(({ n }) => n)).toEqual(entries.map((_, n) => n));
  expect(rows.map(({ length }) => length)).toEqual(entries.map(({ payload }) => payload.length));
}

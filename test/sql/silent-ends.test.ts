import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { queryRows } from '../../src/core/sql/executor.ts';
import { silentEnds, silentEndsOf } from '../../src/core/sql/silent-ends.ts';
import { tables } from '../queries/support/jobs.ts';
import { useTestDatabase } from '../support/test-database.ts';

const database = useTestDatabase({ max: 1 });
const upToFive = [1, 2, 3, 4, 5];

test('the claim and the worker count the same silent ends of a job', async () => {
  const recorded = [[], ...upToFive.map((attempt) => [{ attempt }]), [{ attempt: 5 }, { attempt: 2 }]];
  const jobs = upToFive.flatMap((attempt) =>
    upToFive.flatMap((maxAttempts) => recorded.map((errors) => ({ attempt, maxAttempts, errors }))),
  );
  const rows = await queryRows(
    database.db,
    tables,
    sql`
      select ${silentEndsOf(sql`j.attempt`)} as silent
      from rows from (
        jsonb_to_recordset(${JSON.stringify(jobs)}::jsonb)
          as (attempt int4, "maxAttempts" int4, errors jsonb)
      ) with ordinality as j (attempt, max_attempts, errors, place)
      order by place`,
  );
  expect(rows.map(({ silent }) => Number(silent))).toEqual(jobs.map(silentEnds));
  expect(silentEnds({ attempt: 4, maxAttempts: 5, errors: [{ attempt: 1 }] })).toBe(2);
});
